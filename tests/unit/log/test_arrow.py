"""A record batch says what the batch's own loop over events says."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidOption
from penstock.log import arrow, frame_of
from penstock.log.batch import Batch
from penstock.model.columns import Columns
from penstock.model.event import TIMES, Event
from penstock.model.moment import MAX_TIME_MS

ID_BASE = bytes.fromhex("018bcfe568007abc8123456709abcdef")
# Its last 16 bits overflow at the first event.
CARRYING_ID_BASE = bytes.fromhex("018bcfe568007abc812345670000ffff")
# Its counter overflows at the first event.
FULL_ID_BASE = bytes.fromhex("018bcfe568007abc81234567ffffffff")


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
timestamps = st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1)
NOW_MS = 1_767_225_600_000


def some_times(count: int) -> st.SearchStrategy[list[int]]:
    """Times of one second, of some minutes, of some months, and any."""
    near = [st.integers(NOW_MS, NOW_MS + (1 << bits)) for bits in (10, 18, 34)]
    return st.one_of(
        *(
            st.lists(each, min_size=count, max_size=count)
            for each in (*near, timestamps)
        )
    )


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    count = draw(st.integers(1, 20))

    def each(values: st.SearchStrategy) -> list | None:
        column = st.lists(values, min_size=count, max_size=count)
        same = values.map(lambda value: [value] * count)
        return draw(st.none() | same | column)

    made = Columns(
        draw(st.lists(st.binary(max_size=5), min_size=count, max_size=count)),
        draw(timestamps | some_times(count)),
        ids=each(st.none() | texts),
        keys=each(st.none() | st.binary(max_size=5)),
        priorities=each(st.integers(0, 255)),
        headers=each(st.dictionaries(texts, texts, max_size=3)),
        parents=each(st.none() | texts),
    )
    made.producers = each(st.none() | texts)
    for one in TIMES:
        setattr(made, one.column, each(st.integers(0, MAX_TIME_MS)))
    return made


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    events = draw(columns())
    base = draw(st.integers(0, 1 << 40) | st.just(arrow._BLOCK - 3))
    id_base = draw(st.sampled_from([ID_BASE, CARRYING_ID_BASE, FULL_ID_BASE]))
    events.ids_by_time = draw(st.booleans())
    if draw(st.booleans()):
        steps = st.lists(
            st.integers(1, 70_000), min_size=len(events), max_size=len(events)
        )
        offset = -1
        events.offsets = [offset := offset + step for step in draw(steps)]
    batch = Batch.of("t", frame_of(events, base, id_base))
    lo, hi = sorted(draw(st.tuples(st.integers(0, 20), st.integers(0, 20))))
    first, last = batch.offsets()[0], batch.offsets()[-1]
    return batch.since(min(first + lo, last)).before(max(first + hi, first + 1))


@pytest.mark.slow
@given(batches())
def test_a_record_batch_holds_what_the_events_say(batch: Batch) -> None:
    made = arrow.record_batch(batch)

    made.validate(full=True)
    assert rows_of(made) == [row_of(event) for event in batch.events()]
    assert made.schema == arrow.SCHEMA


@pytest.mark.slow
@given(batches(), st.lists(st.sampled_from(arrow.SCHEMA.names), unique=True))
def test_some_columns_are_the_same_columns(batch: Batch, names: list[str]) -> None:
    made = arrow.record_batch(batch, names)

    assert made.schema.names == names
    if names:
        whole = arrow.record_batch(batch)
        assert made.equals(whole.select(names))


def test_compacted_events_keep_their_offsets_and_ids() -> None:
    whole = Batch.of("t", frame_of(Columns([b"a", b"b", b"c"], 5), 100, ID_BASE))
    some = Batch.of("t", frame_of(whole.take([0, 2]), 100, ID_BASE))

    made = arrow.record_batch(some)

    assert made["offset"].to_pylist() == [100, 102]
    assert made["id"].to_pylist() == [whole.ids()[0], whole.ids()[2]]


def test_plain_columns_are_the_bytes_of_the_frame() -> None:
    frame = frame_of(
        Columns([b"some", b"payload"], [1, 2], keys=[b"k", None]), 0, ID_BASE
    )
    start = pa.py_buffer(frame).address

    made = arrow.record_batch(Batch.of("t", frame), ["timestamp", "key", "payload"])

    buffers = [one for column in made.columns for one in column.buffers() if one]
    assert all(start <= one.address < start + len(frame) for one in buffers)


def test_an_unknown_column_is_named() -> None:
    batch = Batch.of("t", frame_of(Columns([b"a"], 5), 0, ID_BASE))

    with pytest.raises(InvalidOption, match="'size': must be one of offset, "):
        arrow.record_batch(batch, ["size"])


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 24])
def test_an_arrow_file_holds_all_batches(
    chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "CHUNK_BYTES", chunk_bytes)
    sink = io.BytesIO()

    arrow.write_arrow(sink, "t", three_batches())

    with pa.ipc.open_file(sink.getvalue()) as reader:
        assert reader.num_record_batches == (3 if chunk_bytes == 1 else 1)
        assert reader.schema.metadata == {b"penstock.topic": b"t"}
        assert reader.read_all()["offset"].to_pylist() == list(range(6))


def test_a_parquet_file_holds_all_batches() -> None:
    sink = io.BytesIO()

    arrow.write_parquet(sink, "t", three_batches())

    table = pq.read_table(io.BytesIO(sink.getvalue()))
    assert table["offset"].to_pylist() == list(range(6))
    assert table["payload"].to_pylist() == [b"x", b"y"] * 3
    assert table.schema.field("headers").type == arrow.HEADERS


@pytest.mark.parametrize("write", [arrow.write_arrow, arrow.write_parquet])
def test_a_file_of_nothing_has_the_schema(write) -> None:
    sink = io.BytesIO()

    write(sink, "t", [])

    assert sink.getvalue()[:4] in (b"ARRO", b"PAR1")


def three_batches() -> list[Batch]:
    return [
        Batch.of("t", frame_of(Columns([b"x", b"y"], 5), base, ID_BASE))
        for base in (0, 2, 4)
    ]


def rows_of(made: pa.RecordBatch) -> list[tuple]:
    """The rows in the order of ``row_of``; timestamps as whole milliseconds."""
    for name in ("timestamp", *(one.name for one in TIMES)):
        place = made.schema.get_field_index(name)
        made = made.set_column(place, name, made[name].cast(pa.int64()))
    return [tuple(row.values()) for row in made.to_pylist()]


def row_of(event: Event) -> tuple:
    return (
        event.offset,
        event.timestamp_ms,
        event.priority,
        event.id,
        event.key,
        list(event.headers.items()),
        event.payload,
        event.parent,
        event.producer,
        *(getattr(event, one.attribute) for one in TIMES),
    )


@pytest.mark.slow
@given(st.lists(columns(), max_size=4))
def test_pieces_of_a_stream_are_the_whole_of_it(parts: list[Columns]) -> None:
    batches = [Batch.of("t", frame_of(one, 7, ID_BASE)) for one in parts]
    pieces = arrow.ArrowPieces("t")

    data = b"".join([pieces.piece(batch) for batch in batches] + [pieces.end()])

    with pa.ipc.open_stream(data) as reader:
        assert reader.schema.metadata == {b"penstock.topic": b"t"}
        table = reader.read_all()
    expected = [arrow.record_batch(batch) for batch in batches]
    assert table.replace_schema_metadata(None) == pa.Table.from_batches(
        expected, arrow.SCHEMA
    )


def test_a_piece_is_not_kept_for_the_next() -> None:
    batch = Batch.of("t", frame_of(Columns([b"x" * 1000], 5), 0, ID_BASE))
    pieces = arrow.ArrowPieces("t")

    sizes = [len(pieces.piece(batch)) for _ in range(3)]

    assert sizes[0] > sizes[1] == sizes[2] > 1000
