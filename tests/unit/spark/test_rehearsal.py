from __future__ import annotations

from pyspark.sql.types import StructType

from penstock.spark.rehearsal import ROWS, Rehearsed


def test_the_rows_are_of_the_types_that_are_promised() -> None:
    source = Rehearsed({})
    reader = source.reader(StructType())

    batches = [one for part in reader.partitions() for one in reader.read(part)]

    assert [batch.num_rows for batch in batches] == [ROWS, ROWS]
    promised = [column.split() for column in source.schema().split(", ")]
    assert [name for name, _ in promised] == batches[0].schema.names
    assert [str(type_) for type_ in batches[0].schema.types] == [
        "string",
        "int64",
        "binary",
        "timestamp[us, tz=UTC]",
    ]
