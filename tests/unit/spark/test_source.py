from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock.client import connect
from penstock.errors import InvalidOption, ServerRefused, UnknownOption
from penstock.spark.ddl import parse
from penstock.table.naming import NAMES
from tests.local_server import local_server
from tests.unit.spark.scene import filled, read, source

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def test_the_format_has_a_name() -> None:
    assert source().name() == "penstock"


def test_the_schema_needs_nobody_to_be_there() -> None:
    schema = source(servers="localhost:1", subscribe="t").schema()

    assert schema.names == [name for name in NAMES if name != "headers"]


@pytest.mark.parametrize("starting", ["latest", "earliest"])
def test_a_schema_is_for_tables_and_streams(starting: str) -> None:
    one = source(path="d", subscribe="t", startingOffsets=starting, columns="offset")

    assert one.schema().names == ["offset"]


def test_options_are_checked_before_anything_is_read() -> None:
    with pytest.raises(UnknownOption):
        source(path="d", subscribe="t", x="y").schema()


def test_a_narrower_schema_leaves_columns_out(tmp_path: Path) -> None:
    filled(tmp_path, t=2)

    rows = read(source(path=str(tmp_path), subscribe="t"), parse("offset BIGINT"))

    assert rows == [{"offset": 0}, {"offset": 1}]


def test_a_reader_travels(tmp_path: Path) -> None:
    filled(tmp_path, t=2)
    one = source(path=str(tmp_path), subscribe="t", valueSchema="n INT")
    reader = pickle.loads(pickle.dumps(one.reader(one.schema())))

    batches = [b for part in reader.partitions() for b in reader.read(part)]

    assert batches[0].column("_corrupt").to_pylist() == [b"t-0", b"t-1"]


def test_registered_schemas_are_asked_for(tmp_path: Path) -> None:
    with local_server(tmp_path), connect(tmp_path) as client:
        client.ask("schemas.register", topic="t", schema=SCHEMA)
        client.publish("t", [b'{"n": 1}', b'{"n": 2}'])
        client.publish("u", [b"x"])
        one = source(
            path=str(tmp_path),
            subscribe="t",
            valueSchema="registered",
            columns="n,offset",
        )

        assert one.schema().simpleString() == "struct<n:bigint,offset:bigint>"
        assert read(one) == [{"n": 1, "offset": 0}, {"n": 2, "offset": 1}]
        with pytest.raises(ServerRefused, match="topic u has no schema"):
            source(path=str(tmp_path), subscribe="u", valueSchema="registered").schema()


def test_registered_schemas_need_a_broker(tmp_path: Path) -> None:
    filled(tmp_path, t=1)
    one = source(
        path=str(tmp_path), subscribe="t", valueSchema="Registered", retrySeconds="0"
    )

    with pytest.raises(
        InvalidOption, match="valueSchema is 'Registered': must be given"
    ):
        one.schema()
