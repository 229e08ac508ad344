"""Lines, and the two protocols of lines with JSON: cut anywhere, any bytes at all."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import RemoteProtocolError
from penstock.model.event import TIMES
from penstock.wire import jsonq
from penstock.wire.json_text import one_line, one_line_each, why_not_json
from penstock.wire.line import (
    ARITY,
    decode_event,
    decode_events,
    publishes,
    render_events,
    split,
    unknown,
)
from penstock.wire.lines import TOO_LONG, LineSplitter

LIMIT = 16
streams = st.lists(st.sampled_from([b"a", b"\r", b"\n", b"bcdefghi"])).map(b"".join)
texts = st.text(st.characters(codec="utf-8"))
ids = texts.filter(
    lambda id: id.isprintable() and id.strip(" ") == id and 0 < len(id.encode()) <= 256
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=5,
).map(msgspec.json.encode)
# Junk that is often nearly right.
junk = st.binary() | st.lists(
    st.sampled_from(
        [b"pub ", b"t ", b"{", b"}", b'"id":', b'"msg":', b'"priority":', b'"type":']
        + [b'"PUB"', b'"topic":', b'"t"', b"1", b"-", b",", b" ", b"[", b"]", b"\xff"]
        + [b"true", b"null", b"1.5", b'"msgId":', b'"PUBREL"', b'"\\ud800"', b"\r"]
    )
).map(b"".join)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream, and the same cut anywhere."""
    stream = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)))))
    bounds = zip([0, *cuts], [*cuts, len(stream)], strict=True)
    return stream, [stream[start:end] for start, end in bounds]


@given(pieces())
def test_lines_are_the_same_however_the_stream_is_cut(
    cut: tuple[bytes, list[bytes]],
) -> None:
    stream, parts = cut
    *lines, rest = stream.split(b"\n")
    splitter = LineSplitter(LIMIT)

    found = []
    for part in parts:
        found += splitter.feed(part)
        assert len(splitter.rest) <= LIMIT

    assert found == [line if len(line) <= LIMIT else TOO_LONG for line in lines]
    assert splitter.overlong == (len(rest) > LIMIT)
    assert splitter.rest == (b"" if splitter.overlong else rest)


@given(texts, st.lists(st.tuples(st.integers(0, 255), values, ids)))
def test_an_event_line_published_again_is_the_same_event(
    topic: str, events: list[tuple[int, bytes, str]]
) -> None:
    priorities = [priority for priority, _, _ in events]
    msgs = [msg for _, msg, _ in events]
    names = [id for _, _, id in events]

    lines = render_events(topic, priorities, msgs, names)
    decoded = decode_events(topic, lines)

    assert decoded == (names, priorities, msgs, None, [], {})


@given(st.dictionaries(texts, values))
def test_other_fields_come_back_as_they_were(fields: dict[str, bytes]) -> None:
    for name in ("id", "msg", "topic", "priority", *(one.name for one in TIMES)):
        fields.pop(name, None)
    text = msgspec.json.encode({name: msgspec.Raw(fields[name]) for name in fields})

    [line] = render_events("t", [1], [b"2"], ["3"], [text.decode()])

    assert decode_event("t", line) == ("3", 1, b"2", text.decode() if fields else None)


@given(junk)
def test_any_bytes_are_an_event_or_the_fault_of_the_peer(data: bytes) -> None:
    try:
        id, priority, msg, fields = decode_event("t", data)
    except RemoteProtocolError as error:
        assert "\n" not in error.text and "\r" not in error.text
        return
    assert id is None or (id.isprintable() and id == id.strip())
    assert 0 <= priority <= 255
    assert not why_not_json(msg)
    assert fields is None or msgspec.json.decode(fields)


@given(st.lists(junk))
def test_a_batch_is_each_of_its_events_alone(jsons: list[bytes]) -> None:
    rows, errors = [], []
    for index, data in enumerate(jsons):
        try:
            rows.append(decode_event("t", data))
        except RemoteProtocolError as error:
            errors.append((index, error.text))

    decoded = decode_events("t", jsons)

    assert [*zip(decoded.ids, decoded.priorities, decoded.msgs, strict=True)] == [
        row[:3] for row in rows
    ]
    assert (decoded.fields or [None] * len(rows)) == [row[3] for row in rows]
    assert [(index, error.text) for index, error in decoded.errors] == errors


@given(st.lists(junk.map(lambda line: line.replace(b"\n", b""))))
def test_a_run_of_publishes_is_what_splitting_would_give(lines: list[bytes]) -> None:
    topics, events, end = publishes(lines)

    whole = [split(line) for line in lines[:end]]
    assert [parts[:2] for parts in whole] == [[b"pub", topic] for topic in topics]
    assert [parts[2] for parts in whole] == [event.strip() for event in events]
    assert end == len(topics)


@given(junk)
def test_any_line_is_a_command_or_quoted_back_on_one_line(line: bytes) -> None:
    parts = split(line)

    assert 1 <= len(parts) <= max(ARITY.values())
    answer = unknown(parts)
    assert answer.count(b"\n") == 1 and answer.endswith(b"]\r\n")


@given(st.lists(st.binary() | values))
def test_any_payload_is_json_on_one_line(payloads: list[bytes]) -> None:
    shown = one_line_each(payloads)

    assert list(shown) == [one_line(payload) for payload in payloads]
    for text in shown:
        assert not why_not_json(text)
        assert b"\n" not in text and b"\r" not in text


packets = st.one_of(
    st.builds(jsonq.Sub, texts),
    st.builds(jsonq.Unsub, texts),
    st.builds(jsonq.Pubrec, st.integers(-(2**63), 2**64 - 1), texts),
    st.builds(jsonq.Pubcomp, st.integers(-(2**63), 2**64 - 1), texts),
)
publications = st.one_of(
    st.builds(jsonq.Pub, texts, values.map(msgspec.Raw)),
    st.builds(jsonq.Pubrel, st.integers(-(2**63), 2**64 - 1)),
)


@given(packets)
def test_consumer_packets_come_back(packet: jsonq.ConsumerPacket) -> None:
    assert jsonq.parse_consumer(jsonq.encode(packet)) == packet


@given(publications)
def test_publisher_packets_come_back(packet: jsonq.PublisherPacket) -> None:
    assert jsonq.parse_publisher(jsonq.encode(packet)) == packet


@given(junk)
def test_any_line_is_a_packet_or_refused(line: bytes) -> None:
    for packet in (jsonq.parse_consumer(line), jsonq.parse_publisher(line)):
        if packet is jsonq.LineRefusal.INVALID_JSON:
            assert why_not_json(line)
        else:
            assert not why_not_json(line)
    login = jsonq.parse_login(line)
    assert login is None or login.user == login.user.lower()
