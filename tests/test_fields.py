"""Every field of the event is everywhere: in each codec, client, table and page.

A field that is added to ``penstock.model.event.FIELDS`` fails here for each place that
does not know it; the planted one at the end shows that each of them can fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

import msgspec
import pytest
from click.testing import CliRunner

from penstock.cli.jsonl import line_of
from penstock.cli.publish import publish as publish_command
from penstock.cli.show import facts
from penstock.client.deliveries import deliveries
from penstock.client.outgoing import Outgoing
from penstock.client.session import NativeSession
from penstock.delivery.amend import EventCopy
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.desk.letters import event_view
from penstock.embedded import Event as HandlerEvent
from penstock.embedded.job import jobs_of
from penstock.embedded.outgoing import Intent, PublishOptions, columns_of
from penstock.errors import InvalidBatch, RemoteProtocolError
from penstock.gateway.native_events import messages
from penstock.gateway.native_pub import check_given
from penstock.http.event_json import events_json, view_json
from penstock.http.incoming import arrived, read_one
from penstock.http.publishing import _FIELDS as HTTP_HEADERS
from penstock.log import Batch, Columns, frame_of
from penstock.model.columns import PublishColumns
from penstock.model.event import (
    BY_NAME,
    FIELDS,
    SETTABLE,
    TEXTS,
    TIMES,
    Event,
    Field,
    values_of,
)
from penstock.wire.line import decode_event
from penstock.wire.mqtt import Properties, Property
from penstock.wire.native import (
    Events,
    FrameSplitter,
    Publish,
    decode_client,
    decode_server,
)
from tests.unit.gateway.mqtt.scene import Message, Scene

DOCS = Path(__file__).parents[1] / "docs"
BASE = bytes(16)
PLANTED = Field(
    name="colour",
    attribute="colour_name",
    column="colours",
    kind="text",
    blank=None,
    limit="a word",
    arrow="string",
    nullable=True,
    line="colour",
    jsonq="colour",
    mqtt="User Property colour",
    table="colour",
    option="--colour",
)
# A value of each that is not its default.
SAMPLES: dict[str, Any] = {
    "topic": "orders",
    "offset": 7,
    "timestamp": 1_700_000_000_123,
    "priority": 9,
    "id": "i-1",
    "key": b"k",
    "headers": {"h": "v"},
    "payload": b'{"n":1}',
    "parent": "p-1",
    "producer": "me",
    "expires": 4_000_000_000_000,
    "not_before": 3_900_000_000_000,
    "colour": "red",
}


def event() -> Event:
    return Event(**{one.attribute: SAMPLES[one.name] for one in FIELDS})


def batch() -> Batch:
    columns = Columns()
    columns.add(event())
    columns.check()
    return Batch.of("orders", frame_of(columns, 7, BASE))


def same(found: object, field: Field) -> None:
    assert found == SAMPLES[field.name], field.name


def text_of(field: Field) -> Any:
    """The sample as JSON has it."""
    value = SAMPLES[field.name]
    if field.name == "payload":
        return msgspec.json.decode(value)
    return value.decode() if isinstance(value, bytes) else value


# One function a place; each raises if it does not know the field.


def in_the_frame(field: Field) -> None:
    (found,) = batch().events()
    same(getattr(found, field.attribute), field)


def in_what_compaction_keeps(field: Field) -> None:
    taken = batch().take([0])
    taken.check()
    (found,) = Batch.of("orders", frame_of(taken, 7, BASE)).events()
    same(getattr(found, field.attribute), field)


def in_the_copy_of_a_letter(field: Field) -> None:
    data = msgspec.msgpack.encode(EventCopy.of(event()))
    copy = msgspec.msgpack.decode(data, type=EventCopy)
    same(getattr(copy.event("orders", 7), field.attribute), field)


def in_columns_that_are_picked_and_joined(field: Field) -> None:
    if field.column not in {one.column for one in FIELDS if one.column}:
        assert field.name == "topic"
        return
    one, plain = Columns(), Columns([b"x"], 5)
    one.add(event())
    plain.extend(one)
    picked = plain.pick([1])
    if field.name != "offset":
        same(getattr(picked, field.column)[0], field)


def published_natively(field: Field) -> Publish:
    session = NativeSession()
    column = {field.column: [SAMPLES[field.name]]}
    session.publish("orders", Outgoing.of(b"x", **column))
    (body,) = FrameSplitter(1 << 20).feed(session.output())
    message = decode_client(body)
    assert isinstance(message, Publish)
    return message


def in_what_clients_publish(field: Field) -> None:
    assert field.column in get_type_hints(PublishColumns)
    same(getattr(published_natively(field), field.column)[0], field)


def in_events_that_clients_publish_again(field: Field) -> None:
    columns = Outgoing.of(event()).columns
    same(getattr(columns, field.column)[0], field)


def in_what_clients_receive(field: Field) -> None:
    (data,) = messages(0, [Portion(Page(batch()), 0, 1, 1)])
    (body,) = FrameSplitter(1 << 20).feed(data)
    message = decode_server(body)
    assert isinstance(message, Events)
    (delivery,) = deliveries("orders", message)
    same(getattr(delivery.event, field.attribute), field)


def in_what_programs_publish(field: Field) -> None:
    assert field.name in get_type_hints(PublishOptions)
    more = {field.name: SAMPLES[field.name]}
    columns = columns_of([Intent.of("orders", b"x", **more)], 5, None)
    same(getattr(columns, field.column)[0], field)


def in_what_handlers_get(field: Field) -> None:
    (job,) = jobs_of("orders", [Portion(Page(batch()), 0, 1, 1)], by_key=False)
    assert isinstance(job.event, HandlerEvent)
    same(getattr(job.event, field.attribute), field)


def in_the_json_of_http(field: Field) -> None:
    (data,) = events_json(batch())
    assert msgspec.json.decode(data)[field.name] == text_of(field)
    view = msgspec.json.encode(view_json("orders", event_view(event())))
    assert msgspec.json.decode(view)[field.name] == text_of(field)


def in_what_http_takes(field: Field) -> None:
    body = {"payload": 1, field.name: text_of(field)}
    columns = arrived([read_one(msgspec.json.encode(body))], 5, None).columns
    same(getattr(columns, field.column)[0], field)


def in_the_headers_of_http(field: Field) -> None:
    assert field.name == "headers" or field.name.replace("_", "-") in HTTP_HEADERS


@contextmanager
def gateways() -> Iterator[Scene]:
    with TemporaryDirectory() as folder:
        scene = Scene(Path(folder))
        scene.broker.create_topic("orders")
        yield scene
        scene.close()


# An event is said to be for later, and can be consumed all the same.
PAST_MS = 5_000


def sample(field: Field) -> Any:
    return PAST_MS if field.name == "not_before" else SAMPLES[field.name]


def said_in_json(field: Field) -> Any:
    return PAST_MS if field.name == "not_before" else text_of(field)


def stored(scene: Scene, field: Field) -> None:
    """The one event that a gateway has published has the sample of the field."""
    (batch,) = scene.broker.log.read("orders", 0)
    (found,) = batch.events()
    assert getattr(found, field.attribute) == sample(field), field.name


def publish_past_gateways(scene: Scene, field: Field) -> None:
    """Publish an event that has the field, and nothing else but its payload."""
    columns = Columns([SAMPLES["payload"]], 5)
    if field.settable and field.name != "payload":
        columns.take({field.column: [sample(field)]})
    scene.broker.publish("orders", columns)
    scene.pump()
    scene.advance(1.0)


def published_by_line(field: Field) -> None:
    given = {"msg": {"n": 1}, field.line: said_in_json(field)}
    with gateways() as scene:
        data = json.dumps(given, separators=(",", ":"))
        scene.connect("line").say(f"pub orders {data}")
        stored(scene, field)


def consumed_by_line(field: Field) -> None:
    with gateways() as scene:
        peer = scene.connect("line")
        peer.say("sub orders")
        publish_past_gateways(scene, field)
        (line,) = peer.read()
    assert json.loads(line)[field.line] == said_in_json(field)


def published_by_json(field: Field) -> None:
    given = {"type": "PUB", "topic": "orders", "msg": {"n": 1}}
    given |= {str(field.jsonq): said_in_json(field)}
    with gateways() as scene:
        peer = scene.connect("publisher")
        (answer,) = peer.say(json.dumps(given, separators=(",", ":")))
        peer.say(json.dumps({"type": "PUBREL", "msgId": json.loads(answer)["msgId"]}))
        stored(scene, field)


def consumed_by_json(field: Field) -> None:
    with gateways() as scene:
        peer = scene.connect("consumer")
        peer.say("log anna", '{"type":"SUB","topic":"orders"}')
        publish_past_gateways(scene, field)
        (line,) = peer.read()
    assert json.loads(line)[field.jsonq] == said_in_json(field)


def said_in_mqtt(field: Field, now_s: float) -> Properties:
    """The properties that say the sample."""
    match field.mqtt:
        case "Topic Name" | "Payload":
            return {}
        case "Message Expiry Interval":
            left_s = int(SAMPLES["expires"] / 1000 - now_s)
            return {Property.MESSAGE_EXPIRY_INTERVAL: left_s}
        case "User Property":
            return {Property.USER_PROPERTY: [("h", "v")]}
    assert field.mqtt == f"User Property {field.name}"
    return {Property.USER_PROPERTY: [(field.name, str(said_in_json(field)))]}


def published_by_mqtt(field: Field) -> None:
    with gateways() as scene:
        said = said_in_mqtt(field, scene.clock.now_s())
        client = scene.client()
        # QoS 2 is what other protocols have, and no header says it.
        client.publish("orders", SAMPLES["payload"], qos=2, ids=[1], properties=said)
        stored(scene, field)


def consumed_by_mqtt(field: Field) -> None:
    with gateways() as scene:
        client = scene.client()
        client.subscribe("orders")
        client.packets()
        said = said_in_mqtt(field, scene.clock.now_s())
        publish_past_gateways(scene, field)
        (message,) = client.messages()
    found = Message("orders", SAMPLES["payload"], properties=said)
    assert message._replace(properties=message.properties or {}) == found


def in_json_lines(field: Field) -> None:
    assert msgspec.json.decode(line_of(event()))[field.name] == text_of(field)


def in_what_people_read(field: Field) -> None:
    told = dict(facts(values_of(event())))
    assert field.name in told or (field.name == "headers" and "header" in told)


def in_a_view_of_the_desk(field: Field) -> None:
    same(getattr(event_view(event()), field.name), field)


def on_the_command_line(field: Field) -> None:
    assert field.option is not None
    found = CliRunner().invoke(publish_command, ["--help"]).output
    assert re.search(rf"(^|\s|\[){field.option}\b", found, re.MULTILINE)


def in_arrow_and_parquet(field: Field) -> None:
    arrow = pytest.importorskip("penstock.log.arrow")
    column = arrow.record_batch(batch())[field.name]
    if field.kind == "time":
        column = column.cast("int64")
    value = column.to_pylist()[0]
    same(dict(value) if field.kind == "map" else value, field)
    assert str(column.type) == field.arrow or field.kind in ("time", "map")


def in_tables(field: Field) -> None:
    naming = pytest.importorskip("penstock.table.naming")
    assert field.table in naming.NAMES
    assert field.table in naming.view([])


def in_sql(field: Field) -> None:
    scanning = pytest.importorskip("penstock.sql.scanning")
    assert field.table in scanning._TYPES


def in_the_source_of_spark(field: Field) -> None:
    columns = pytest.importorskip("penstock.spark.columns")
    schema = columns.schema_of(None, None, include_headers=True)
    assert field.table in schema.names


def in_the_sink_of_spark(field: Field) -> None:
    rows = pytest.importorskip("penstock.spark.rows")
    import pyarrow as pa

    value: Any = SAMPLES[field.name]
    kinds = {
        "bytes": ("binary", pa.binary()),
        "text": ("string", pa.string()),
        "level": ("int", pa.int32()),
        "time": ("timestamp", pa.timestamp("us", "UTC")),
        "map": ("map<string,string>", pa.map_(pa.string(), pa.string())),
    }
    said, type_ = kinds[field.kind]
    if field.kind == "time":
        value *= 1000
    if field.kind == "map":
        value = list(value.items())
    given = {
        "value": ("binary", pa.array([b"x"])),
        field.table: (said, pa.array([value], type_)),
    }
    types = [(name, one) for name, (one, _) in given.items()]
    frame = rows.RowLayout.of(types, "orders")
    made = pa.RecordBatch.from_arrays([one for _, one in given.values()], list(given))
    (piece,) = frame.pieces(made, 0, 0)
    same(piece.columns[field.column][0], field)


def in_the_docs(field: Field) -> None:
    wanted = {
        "formats/batch-frame.md": [] if not field.column else [field.name.upper()],
        "protocols/native.md": [] if not field.column else [field.column],
        "protocols/line.md": [field.line] if field.line else [],
        "protocols/json.md": [field.jsonq] if field.jsonq else [],
        "http.md": [field.name],
        "spark.md": [field.table],
        "sql.md": [field.table],
        "cli.md": [field.name, field.option or field.name],
        "embedded.md": [field.name] if field.settable else [],
    }
    for page, words in wanted.items():
        text = (DOCS / page).read_text()
        for word in words:
            assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text), (page, word)


EVERYWHERE = (
    in_the_frame,
    in_what_compaction_keeps,
    in_the_copy_of_a_letter,
    in_columns_that_are_picked_and_joined,
    in_what_clients_receive,
    in_what_handlers_get,
    in_the_json_of_http,
    in_json_lines,
    in_tables,
    in_sql,
    in_the_source_of_spark,
    in_the_docs,
)
PUBLISHERS = (
    in_what_clients_publish,
    in_events_that_clients_publish_again,
    in_what_programs_publish,
    in_what_http_takes,
    in_the_headers_of_http,
    in_what_people_read,
    in_the_sink_of_spark,
)
_GIVEN = dict.fromkeys(
    ("offset", "timestamp", "producer"), "the broker gives it, and tells it elsewhere"
)
_NO_LINE = _GIVEN | {
    "key": "lines are text, and keys are bytes",
    "headers": "members that are no field take their place, as the text of an object",
    "parent": "chains are made by programs that publish what follows from an event",
}
_NO_JSON = _NO_LINE | {
    "headers": "a PUB is a topic and a message; other members are ignored",
    "priority": "messages of a topic come in its order",
    "id": "the broker gives it: msgId is what tells messages apart",
}
_NO_MQTT = _GIVEN | {
    "id": "packets have identifiers of their own",
    "parent": "as on lines",
}
# What a gateway cannot say, and why: all other fields of the list have to go through.
UNSAID: dict[Callable[[Field], None], dict[str, str]] = {
    published_by_line: _NO_LINE,
    consumed_by_line: _NO_LINE,
    published_by_json: _NO_JSON,
    consumed_by_json: _NO_JSON,
    published_by_mqtt: _NO_MQTT,
    consumed_by_mqtt: _NO_MQTT
    | {
        "key": "it may be no text; one that was said in MQTT is a header, too",
        "not_before": "it is over; one that was said in MQTT is a header, too",
    },
}


def is_said(place: Callable[[Field], None], field: Field) -> bool:
    return field.name not in UNSAID[place]


# Where it applies: a place, and which fields it has.
SOMEWHERE: dict[Callable[[Field], None], Callable[[Field], bool]] = {
    **{place: partial(is_said, place) for place in UNSAID},
    on_the_command_line: lambda field: field.option is not None,
    in_arrow_and_parquet: lambda field: field.name != "topic",
    in_a_view_of_the_desk: lambda field: field.name not in ("topic",),
}
CASES = [
    *((place, field) for place in EVERYWHERE for field in FIELDS),
    *((place, field) for place in PUBLISHERS for field in SETTABLE),
    *(
        (place, field)
        for place, has in SOMEWHERE.items()
        for field in FIELDS
        if has(field)
    ),
]
_NOT_READ: dict[Callable[[Field], None], set[str]] = {in_what_people_read: {"id"}}


@pytest.mark.parametrize(
    ("place", "field"),
    [
        pytest.param(place, field, id=f"{field.name}-{place.__name__}")
        for place, field in CASES
        if field.name not in _NOT_READ.get(place, ())
    ],
)
def test_a_field_of_the_list_is_there(
    place: Callable[[Field], None], field: Field
) -> None:
    place(field)


@pytest.mark.parametrize("place", [*EVERYWHERE, *PUBLISHERS, *SOMEWHERE])
def test_a_field_that_is_only_in_the_list_is_missed(
    place: Callable[[Field], None],
) -> None:
    with pytest.raises(Exception):  # noqa: B017  # whatever each says of it
        place(PLANTED)


@pytest.mark.parametrize("place", UNSAID)
def test_what_a_gateway_cannot_say_is_a_field_that_says_so(
    place: Callable[[Field], None],
) -> None:
    word = place.__name__.removeprefix("published_by_").removeprefix("consumed_by_")
    attribute = {"line": "line", "json": "jsonq", "mqtt": "mqtt"}[word]

    unsaid = {one.name for one in FIELDS if getattr(one, attribute) is None}

    assert unsaid <= UNSAID[place].keys() <= BY_NAME.keys()


def test_the_list_says_what_an_event_has() -> None:
    assert {one.attribute for one in FIELDS} == set(Event.__struct_fields__)
    assert {one.attribute for one in FIELDS} == set(HandlerEvent.__struct_fields__)


def test_what_nobody_says_is_the_default() -> None:
    plain = Batch.of("t", frame_of(Columns([b"x"], 5), 0, BASE))
    (found,) = plain.events()

    bare = Event(topic="t", offset=0, id=found.id, timestamp_ms=5, payload=b"x")
    assert found == bare


@pytest.mark.parametrize("field", TEXTS, ids=lambda field: field.name)
@pytest.mark.parametrize("value", ["", " x", "\n", "x" * 257])
def test_a_text_that_is_none_is_refused_by_its_name(field: Field, value: str) -> None:
    column: dict[str, Any] = {field.column: [value]}
    said: dict[str, Any] = {field.name: value}
    message = Publish(seq=1, topic="orders", payloads=[b"x"], **column)
    with pytest.raises(InvalidBatch, match=f"{field.name} is one that"):
        check_given(message)
    with pytest.raises(InvalidBatch, match=f"{field.name} is one that"):
        Intent.of("orders", b"x", **said)
    row = read_one(msgspec.json.encode({"payload": 1, **said}))
    with pytest.raises(InvalidBatch, match=f"{field.name} is one that"):
        arrived([row], 5, None)


@pytest.mark.parametrize("field", TIMES, ids=lambda field: field.name)
@pytest.mark.parametrize("value", [-1, 1 << 60, 1.5, "soon", True])
def test_a_time_that_is_none_is_refused_by_its_name(
    field: Field, value: object
) -> None:
    columns = Columns([b"x"], 5)
    setattr(columns, field.column, [value])
    with pytest.raises(InvalidBatch, match=f"{field.name} is .*milliseconds"):
        columns.check()

    body = msgspec.json.encode({"msg": 1, field.name: value})
    with pytest.raises(RemoteProtocolError, match=f"{field.name} is .*milliseconds"):
        decode_event("t", body)
