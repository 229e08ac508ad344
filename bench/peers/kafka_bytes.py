"""The few requests of the Kafka protocol that a publisher needs, by hand.

request    size:i32  api:i16 version:i16 correlation:i32 client:string  body
response   size:i32  correlation:i32  body
string     size:i16 bytes; array: count:i32 items; varint: zigzag, seven bits a byte
batch      base offset:i64 size:i32 epoch:i32 2:i8 crc32c:u32 | attributes:i16 last:i32
           times:i64 i64 producer:i64 epoch:i16 sequence:i32 count:i32 records
record     size:varint 0:i8 time:varint offset:varint key:varint value headers:varint
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence

from crc32c import crc32c

PRODUCE, CREATE_TOPICS, DELETE_TOPICS = (0, 3), (19, 4), (20, 1)
ACKS_OF_ALL = -1
TIMEOUT_MS = 30_000
SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhi")
_PARTITION = struct.Struct(">ihqq")
_BATCH = struct.Struct(">qiibI")
_CHECKED = struct.Struct(">hiqqqhii")


def request(api: tuple[int, int], body: bytes, client: bytes = b"bench") -> bytes:
    whole = _HEAD.pack(*api, 0) + string(client) + body
    return SIZE.pack(len(whole)) + whole


def create_topics(names: Sequence[bytes], settings: Mapping[bytes, bytes]) -> bytes:
    pairs = [string(name) + string(value) for name, value in settings.items()]
    one_partition = struct.pack(">ih", 1, 1) + array([])
    topics = [string(name) + one_partition + array(pairs) for name in names]
    return request(CREATE_TOPICS, array(topics) + struct.pack(">i?", TIMEOUT_MS, False))


def delete_topics(names: Sequence[bytes]) -> bytes:
    return request(
        DELETE_TOPICS, array(list(map(string, names))) + SIZE.pack(TIMEOUT_MS)
    )


def produce(events: Mapping[bytes, Sequence[bytes]]) -> bytes:
    """Payloads for each topic, confirmed when the topic's replicas have them."""
    topics = []
    for name, payloads in events.items():
        records = batch(payloads)
        partition = struct.pack(">ii", 0, len(records)) + records
        topics.append(string(name) + array([partition]))
    head = struct.pack(">hhi", -1, ACKS_OF_ALL, TIMEOUT_MS)
    return request(PRODUCE, head + array(topics))


def produced(body: bytes) -> list[int]:
    """The error of each topic, 0 if there is none."""
    errors, at = [], 2 * SIZE.size
    for _ in range(SIZE.unpack_from(body, SIZE.size)[0]):
        (size,) = struct.unpack_from(">h", body, at)
        # The name, and the number of partitions, which is 1.
        at += 2 + size + SIZE.size
        errors.append(_PARTITION.unpack_from(body, at)[1])
        at += _PARTITION.size
    return errors


def batch(payloads: Sequence[bytes]) -> bytes:
    now = time.time_ns() // 1_000_000
    records = b"".join(record(number, one) for number, one in enumerate(payloads))
    last, count = len(payloads) - 1, len(payloads)
    checked = _CHECKED.pack(0, last, now, now, -1, -1, -1, count) + records
    # The size counts from behind itself.
    size = _BATCH.size - 12 + len(checked)
    return _BATCH.pack(0, size, -1, 2, crc32c(checked)) + checked


def record(number: int, value: bytes) -> bytes:
    body = b"\0\0" + varint(number) + varint(-1) + varint(len(value)) + value + b"\0"
    return varint(len(body)) + body


def varint(number: int) -> bytes:
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def array(items: Sequence[bytes]) -> bytes:
    return SIZE.pack(len(items)) + b"".join(items)
