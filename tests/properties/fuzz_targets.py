"""Every codec that reads what a stranger wrote, as a target of fuzzing.

Bytes from a connection, bodies of requests, files that people write, and files that a
disk has damaged. Limits are small, so that they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

from penstock.access.grants import covers
from penstock.cdc import pgoutput
from penstock.errors import (
    BadRequest,
    BadUsersFile,
    InvalidArgument,
    InvalidBatch,
    InvalidName,
    RemoteProtocolError,
)
from penstock.gateway.mqtt.headers import PREFIX, to_properties
from penstock.http import incoming
from penstock.http.trace_context import context_of
from penstock.log import Batch, Columns, frame_of
from penstock.log import frame as frames
from penstock.log.journal import group
from penstock.model.topic_filter import check_filter, matches, overlap, shared
from penstock.server.users_file import read_users
from penstock.sessions.filters import FilterTree
from penstock.wire import json_text, jsonq, line, maze, native, sse
from penstock.wire.control.session import tweets
from penstock.wire.lines import LineSplitter
from penstock.wire.mqtt import (
    ClientPacketParser,
    ClientParser,
    Malformed,
    Reason,
    render_properties,
    render_publishes,
)
from tests.properties.fuzzing import Outcome, Target
from tests.unit.wire.mqtt.examples import (
    golden,
    one_by_one,
    open_client,
    open_parser,
)

DATA = Path(__file__).parent.parent / "data"
LINE_BYTES = 4000
SHORT_BYTES = 60
MQTT_BYTES = 2000
NATIVE_BYTES = 2000
SSE_BYTES = 100


def said_in(*folders: str) -> list[bytes]:
    """Lines that clients say in the transcripts."""
    found = set()
    for folder in folders:
        for path in (DATA / folder).glob("*.txt"):
            for text in path.read_text().splitlines():
                if " > " in f" {text}"[:12]:
                    found.add(text.partition("> ")[2].encode() + b"\n")
    return sorted(found)


# Protocols of lines


def split(pieces: Sequence[bytes], limit: int = LINE_BYTES) -> list[bytes]:
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    for piece in pieces:
        lines += splitter.feed(piece)
        assert len(splitter.rest) <= limit, "it holds too much"
    return [*lines, b"", splitter.rest]


def short_lines(pieces: Sequence[bytes]) -> list[bytes]:
    return split(pieces, SHORT_BYTES)


def each(parse: Callable[[bytes], Outcome]) -> Callable[[Sequence[bytes]], Outcome]:
    """Lines of a stream that have come to their end, each by itself."""
    return lambda pieces: [parse(one) for one in split(pieces)[:-2]]


def line_command(text: bytes) -> Outcome:
    parts = line.split(text)
    line.publishes([text])
    if len(parts) == 3 and parts[0] == b"pub":
        topic = line.text("topic", parts[1])
        return line.decode_event(topic, parts[2])
    return line.unknown(parts)


def line_block(pieces: Sequence[bytes]) -> Outcome:
    """Commands in one piece: a run, or not."""
    block = b"".join(pieces) + b"\n"
    run = line.command_run(block)
    if run is None:
        return None
    word, topic, rests = run
    if word == b"ack":
        return line.ids_of(rests)
    return line.decode_events(topic.decode(errors="replace"), rests)


def json_line(text: bytes) -> Outcome:
    login = jsonq.parse_login(text)
    return login, jsonq.parse_consumer(text), jsonq.parse_publisher(text)


def maze_lines(pieces: Sequence[bytes]) -> Outcome:
    lines = split(pieces)
    parsed = maze.parse(lines)
    assert len(parsed.rows) + len(parsed.bad) == len(lines)
    return parsed


def shown(pieces: Sequence[bytes]) -> Outcome:
    """A payload, as it is shown to whoever reads lines."""
    payload = b"".join(pieces)
    texts = (json_text.one_line(payload), tweets([payload], 1)[:-2])
    assert not any(b"\n" in text or b"\r" in text for text in texts)
    return texts


# Protocols of packets


def mqtt(
    begin: Callable[[], ClientPacketParser | ClientParser],
) -> Callable[[Sequence[bytes]], Outcome]:
    def run(pieces: Sequence[bytes]) -> Outcome:
        parser = begin()
        packets: list[object] = []
        for piece in pieces:
            packets += parser.feed(piece)
            assert parser.held_bytes <= MQTT_BYTES, "it holds too much"
            if parser.failed is not None:
                break
        return Packets(packets), _told(parser.failed)

    return run


def _told(failed: Malformed | None) -> tuple[Reason, str] | None:
    if failed is None:
        return None
    # A CONNECT that is too large is explained as far as it has come.
    large = (Reason.PACKET_TOO_LARGE, Reason.CLIENT_IDENTIFIER_NOT_VALID)
    text = "too large" if failed.reason in large else failed.text
    return (large[0] if failed.reason in large else failed.reason), text


class Packets:
    """Packets that are compared one by one, and only if somebody asks."""

    def __init__(self, packets: list[object]) -> None:
        self._packets = packets

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Packets)
        return self._single() == other._single()

    def __repr__(self) -> str:
        return repr(self._single())

    def _single(self) -> list[object]:
        return [*one_by_one(self._packets)]  # type: ignore[arg-type]  # of both sides


def mqtt_headers(pieces: Sequence[bytes]) -> Outcome:
    """Headers that somebody gave an event, as a client of MQTT gets them."""
    text = b"".join(pieces).decode(errors="replace")
    names = [
        *("user-properties", "content-type", "response-topic", "payload-format"),
        *("correlation-data", "expires-ms"),
    ]
    said = {f"{PREFIX}{name}": text for name in names} | {text[:20]: text}
    properties = render_properties(to_properties(said, 3, 0.0))
    parser = open_client(5, 1 << 20)
    parser.feed(render_publishes(b"t", [b"x"], qos=0, properties=properties))
    assert parser.failed is None, parser.failed
    return properties


def native_messages(
    decode: Callable[[bytes | memoryview], object],
) -> Callable[[Sequence[bytes]], Outcome]:
    def run(pieces: Sequence[bytes]) -> Outcome:
        splitter = native.FrameSplitter(NATIVE_BYTES)
        for piece in pieces:
            for body in splitter.feed(piece):
                decode(body)
            assert splitter.held_bytes <= NATIVE_BYTES + 4, "it holds too much"
        return splitter.held_bytes

    return run


def events(pieces: Sequence[bytes]) -> Outcome:
    parser = sse.SseParser(SSE_BYTES)
    found = []
    for piece in pieces:
        found += parser.feed(piece)
        assert parser.held_bytes <= 2 * (4096 + 8) + SSE_BYTES, "it holds too much"
    return found, parser.last_event_id, parser.retry_ms


# Bodies of requests


def body(pieces: Sequence[bytes]) -> Outcome:
    data = b"".join(pieces)
    lines = incoming.arrived_lines(data, 0, None)
    context_of([(b"traceparent", data), (b"tracestate", data)])
    if data[:1] == b"[":
        return incoming.arrived(incoming.read_array(data), 0, None)
    return incoming.arrived([incoming.read_one(data)], 0, None), lines


# Names and files that people write


def filters(pieces: Sequence[bytes]) -> Outcome:
    text = b"".join(pieces).decode(errors="replace")
    one, _, other = text.partition("\n")
    shared(one)
    check_filter(one)
    check_filter(other)
    tree: FilterTree[int, None] = FilterTree()
    tree.add(one, 1, None)
    found = bool(tree.match(other))
    if "+" not in other and "#" not in other:
        assert found == matches(one, other), "the tree and a look disagree"
    assert overlap(one, other) == overlap(other, one)
    covers(one, other)
    return found


class Text:
    """A file of users that is on no disk."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_bytes(self) -> bytes:
        return self._data


def users(pieces: Sequence[bytes]) -> Outcome:
    # No more of a path is asked for.
    return len(read_users(cast("Path", Text(b"".join(pieces)))))


# What a disk has damaged, and what a database says


def journal(pieces: Sequence[bytes]) -> Outcome:
    block = memoryview(b"".join(pieces))
    count = 0
    for at in range(0, len(block), 8):
        header = group.peek(block, at)
        if header is not None and group.intact(block, at, header):
            count += sum(1 for _ in group.entries_of(block, at, header))
    return count


def frame(pieces: Sequence[bytes]) -> Outcome:
    block = memoryview(b"".join(pieces))
    header = frames.peek(block, 0)
    if header is None or not frames.intact(block, 0, header):
        return None
    return list(Batch.of("t", block[: header.length]).events())


def changes(pieces: Sequence[bytes]) -> Outcome:
    return pgoutput.decode(b"".join(pieces))


# The corpora

BODIES = [
    b'{"payload":{"a":[1,2.5,null]},"id":"1","priority":3}\n',
    b'{"text":"hi","key":"k","headers":{"a":"b"},"parent":"p","dedup_id":"d"}\n',
    b'{"base64":"aGk=","key":"aw==","key_encoding":"base64"}\n',
    b'[{"payload":1},{"payload":"x","id":"7"}]',
    b'{"payload":1}\n{"payload":2}\n\n {"payload":3} \n',
    b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
]
ANNA = b"anna:scrypt$16384$8$1$AAAAAAAAAAAAAAAAAAAAAA==$" + b"A" * 43 + b"=\n"
USERS = [
    ANNA + b"# people\n",
    ANNA + b"anna may publish a/#\nanna may nothing\n",
    ANNA.replace(b"anna", b"bob") + b"bob may subscribe +/b\nbob may read $SYS/#\n\n",
]
FILTERS = [
    *(b"a/b/c\na/b/c", b"a/+/c\na/b/c", b"#\na", b"a/#\na", b"+/+\n/x"),
    b"$share/g/a/#\na",
    *(b"$SYS/#\n$SYS/x", "é/ü\né/+".encode(), b"/\n//", b"a//b\na/+/b"),
]  # fmt: skip
STREAM = [
    b"data: one\n\n", b"id: 41\nevent: tweet\ndata: {\"a\":1}\ndata: more\n\n",
    b"\xef\xbb\xbf: comment\r\nretry: 3000\r\rdata:x\r\n\r\n", b"data\nid\n\n",
    b"data: " + b"x" * 300 + b"\n\n", b"id: " + b"y" * 5000 + b"\ndata:\n\n",
]  # fmt: skip
MAZE = [
    b"1|F|60|50\n2|U|60|50\r\n3|B\n", b"666|P|1|2\n", b"7|S|32\n", b"12345\n",
    b"9223372036854775807|B\n", b"7\n8\r\n",
]  # fmt: skip
SHOWN = [
    b'{"after":{"text":"a\\nb"},"op":"c"}', b'{"message":{"tweet":{"text":"hi"}}}',
    b'{"text":"x"}', b'["a",\r\n 1]', "plain é text".encode(), b"\xff\xfe\0", b"1",
]  # fmt: skip
HEADERS = [
    b'[["a","b"],["a","c"]]', b"text/plain", b"1", b"1700000000000", b"aGk=", b"a/b",
]  # fmt: skip
# Begin, commit, relation, insert, update, delete, truncate.
CHANGES = [
    b"B" + bytes(20), b"C" + bytes(25), b"T\0\0\0\2\0\0\0\0\1\0\0\0\2",
    b"R\0\0\0\1public\0t\0d\0\2\1id\0\0\0\0\x14\xff\xff\xff\xff\0n\0\0\0\0\x19\0\0\0\0",
    b"I\0\0\0\1N\0\3t\0\0\0\0011nu", b"U\0\0\0\1K\0\1t\0\0\0\0011N\0\1t\0\0\0\0012",
    b"U\0\0\0\1N\0\1n", b"D\0\0\0\1O\0\1t\0\0\0\0011", b"D\0\0\0\1K\0\1n",
]  # fmt: skip


def _frame() -> bytes:
    columns = Columns(
        [b"one", b"two"],
        1,
        ids=["a", "b"],
        keys=[b"k", None],
        headers=[{"a": "b"}, {}],
        priorities=[1, 2],
        producer="p",
    )
    return bytes(frame_of(columns, 7, bytes(16)))


def _group() -> bytes:
    entries = [group.JournalEntry(1, 2, _frame()), group.JournalEntry(2, 0, b"record")]
    parts = group.encode(entries, position=0, synced=0, stamp=1, number=3, time_ms=4)
    return b"".join(map(bytes, parts))


def _mqtt_targets() -> Iterable[Target]:
    for version in (3, 4, 5):
        client, server = (
            golden(f"client_{version}.hex"),
            golden(f"server_{version}.hex"),
        )
        yield Target(
            name=f"MQTT {version} from the first byte",
            corpus=[*client[:3], b"".join(client), *map(client[0].__add__, client[1:])],
            run=mqtt(lambda: ClientPacketParser(MQTT_BYTES)),
            streams=True,
        )
        yield Target(
            name=f"MQTT {version} behind CONNECT",
            corpus=[one for one in client if one[0] != 0x10],
            run=mqtt(lambda version=version: open_parser(version, MQTT_BYTES)),  # type: ignore[misc]
            streams=True,
        )
        yield Target(
            name=f"MQTT {version} of a server",
            corpus=server,
            run=mqtt(lambda version=version: open_client(version, MQTT_BYTES)),  # type: ignore[misc]
            streams=True,
        )


def native_corpus(name: str) -> list[bytes]:
    lines = (DATA / "native" / name).read_text().splitlines()
    return [bytes.fromhex(one) for one in lines if one and not one.startswith("#")]


def targets() -> list[Target]:
    remote = (RemoteProtocolError,)
    lines = said_in("line")
    jsons = said_in("jsonq")
    http = (BadRequest, InvalidArgument, InvalidBatch)
    clients = [
        *native_corpus("client.hex"),
        *native_corpus("client_before_failures.hex"),
    ]
    return [
        Target(name="lines", corpus=lines, run=short_lines, streams=True),
        Target(
            name="line commands",
            corpus=lines,
            run=each(line_command),
            errors=remote,
        ),
        Target(name="line runs", corpus=lines, run=line_block, errors=remote),
        Target(name="JSON lines", corpus=jsons, run=each(json_line), streams=True),
        Target(name="maze events", corpus=MAZE, run=maze_lines, streams=True),
        Target(
            name="maze clients",
            corpus=MAZE,
            run=each(maze.parse_client_id),
            errors=remote,
        ),
        Target(name="payloads shown", corpus=SHOWN, run=shown),
        *_mqtt_targets(),
        Target(name="MQTT headers", corpus=HEADERS, run=mqtt_headers),
        Target(
            name="native clients",
            corpus=clients,
            run=native_messages(native.decode_client),
            errors=remote,
        ),
        Target(
            name="native servers",
            corpus=native_corpus("server.hex"),
            run=native_messages(native.decode_server),
            errors=remote,
        ),
        Target(name="event streams", corpus=STREAM, run=events, streams=True),
        Target(name="HTTP bodies", corpus=BODIES, run=body, errors=http),
        Target(name="filters", corpus=FILTERS, run=filters, errors=(InvalidName,)),
        Target(name="users files", corpus=USERS, run=users, errors=(BadUsersFile,)),
        Target(name="journal", corpus=[_group(), _group() * 3], run=journal),
        Target(name="frames", corpus=[_frame()], run=frame),
        Target(name="pgoutput", corpus=CHANGES, run=changes, errors=remote),
    ]
