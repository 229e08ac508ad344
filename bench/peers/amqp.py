"""The few frames of AMQP 0-9-1 that a publisher and a consumer need, by hand.

method   01  channel:u16  size:u32  class:u16 method:u16 arguments  CE
header   02  channel:u16  size:u32  class:u16 0:u16 body:u64 flags:u16 …  CE
body     03  channel:u16  size:u32  bytes  CE
"""

from __future__ import annotations

import struct

CHANNEL = 1
END = b"\xce"
PROTOCOL = b"AMQP\x00\x00\x09\x01"
CHANNEL_MAX = 2_047
FRAME_MAX = 131_072

# What set-up waits for: class and method of the answer.
CHANNEL_OPENED = struct.pack(">HH", 20, 11)
EXCHANGE_DECLARED = struct.pack(">HH", 40, 11)
QUEUE_DECLARED = struct.pack(">HH", 50, 11)
QUEUE_BOUND = struct.pack(">HH", 50, 21)
QUEUE_PURGED = struct.pack(">HH", 50, 31)
QUEUE_DELETED = struct.pack(">HH", 50, 41)
QOS_SET = struct.pack(">HH", 60, 11)
CONSUMING = struct.pack(">HH", 60, 21)
CONFIRMING = struct.pack(">HH", 85, 11)

# Type, channel, size, class and method of basic.ack; tag and flag follow, then END.
ACK = struct.pack(">BHIHH", 1, CHANNEL, 13, 60, 80)
ACK_FRAME = struct.Struct(">11sQBc")

DURABLE = 2
NO_ACK = 2
PERSISTENT = struct.pack(">HB", 0x1000, 2)


def handshake() -> bytes:
    """Everything up to an open channel; the server reads it in its own time."""
    start_ok = _table(b"") + _short(b"PLAIN") + _long(b"\0guest\0guest")
    return b"".join(
        (
            PROTOCOL,
            _method(0, 10, 11, start_ok + _short(b"en_US")),
            _method(0, 10, 31, struct.pack(">HIH", CHANNEL_MAX, FRAME_MAX, 0)),
            _method(0, 10, 40, _short(b"/") + _short(b"") + b"\0"),
            _method(CHANNEL, 20, 10, _short(b"")),
        )
    )


def declare_queue(name: bytes, kind: bytes) -> bytes:
    kind_entry = _short(b"x-queue-type") + b"S" + _long(kind)
    arguments = b"\0\0" + _short(name) + bytes([DURABLE]) + _table(kind_entry)
    return _method(CHANNEL, 50, 10, arguments)


def declare_fanout(name: bytes) -> bytes:
    arguments = b"\0\0" + _short(name) + _short(b"fanout")
    return _method(CHANNEL, 40, 10, arguments + bytes([DURABLE]) + _table(b""))


def bind(queue: bytes, exchange: bytes) -> bytes:
    arguments = b"\0\0" + _short(queue) + _short(exchange) + _short(b"") + b"\0"
    return _method(CHANNEL, 50, 20, arguments + _table(b""))


def purge(queue: bytes) -> bytes:
    return _method(CHANNEL, 50, 30, b"\0\0" + _short(queue) + b"\0")


def delete(queue: bytes) -> bytes:
    return _method(CHANNEL, 50, 40, b"\0\0" + _short(queue) + b"\0")


def confirm() -> bytes:
    return _method(CHANNEL, 85, 10, b"\0")


def qos(prefetch: int) -> bytes:
    return _method(CHANNEL, 60, 10, struct.pack(">IHB", 0, prefetch, 0))


def consume(queue: bytes, *, acknowledged: bool) -> bytes:
    flags = b"\0" if acknowledged else bytes([NO_ACK])
    arguments = b"\0\0" + _short(queue) + _short(b"") + flags + _table(b"")
    return _method(CHANNEL, 60, 20, arguments)


def publish(exchange: bytes, routing_key: bytes, body: bytes) -> bytes:
    """A persistent message: one method, one header, one body frame."""
    arguments = b"\0\0" + _short(exchange) + _short(routing_key) + b"\0"
    header = struct.pack(">HHQ", 60, 0, len(body)) + PERSISTENT
    return (
        _method(CHANNEL, 60, 40, arguments)
        + _frame(2, CHANNEL, header)
        + _frame(3, CHANNEL, body)
    )


def ack_up_to(tag: int) -> bytes:
    return ACK_FRAME.pack(ACK, tag, 1, END)


def _method(channel: int, class_id: int, method_id: int, arguments: bytes) -> bytes:
    return _frame(1, channel, struct.pack(">HH", class_id, method_id) + arguments)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + END


def _short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def _long(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def _table(entries: bytes) -> bytes:
    return _long(entries)
