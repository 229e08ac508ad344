"""MQTT 3.1.1 as the loader needs it: packets made beforehand, streams by strides.

All publishes of a case are equally long, and so are all acknowledgements. So a stream
is runs of equal packets, and a run is taken at once: how far it goes is seen in the
first bytes of its packets, and its packet ids are two slices.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from bench.peers.adapter import Refused

PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 0x30, 0x40, 0x50, 0x62, 0x70
ACK_BYTES = 4
CONNACK = b"\x20\x02"
SUBACK = b"\x90\x03"
# What is answered to a publish of this QoS.
ANSWERS = {1: PUBACK, 2: PUBREC}


def connect(client_id: str, *, clean: bool = True) -> bytes:
    flags = b"\x02" if clean else b"\x00"
    body = text("MQTT") + b"\x04" + flags + b"\x00\x00" + text(client_id)
    return b"\x10" + varint(len(body)) + body


def subscribe(topic: str, qos: int) -> bytes:
    body = b"\x00\x01" + text(topic) + bytes((qos,))
    return b"\x82" + varint(len(body)) + body


def publish(topic: str, payload: bytes, qos: int, packet_id: int) -> bytes:
    number = struct.pack("!H", packet_id) if qos else b""
    body = text(topic) + number + payload
    return bytes((PUBLISH | qos << 1,)) + varint(len(body)) + body


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("!H", len(data)) + data


def varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(0x80 | number & 0x7F)
        number >>= 7
    parts.append(number)
    return bytes(parts)


@dataclass(slots=True)
class Heard:
    """What a connection has got so far."""

    # Publishes of others.
    delivered: int = 0
    # Own publishes whose handshake is over.
    done: int = 0
    # Handshakes of QoS 2 that the server has ended.
    released: int = 0


class Ear:
    """Counts what one connection receives, and says what it has to answer."""

    def __init__(self, topic: str, payload_bytes: int, qos: int) -> None:
        sample = publish(topic, b"." * payload_bytes, qos, 1)
        self._publish_bytes = len(sample)
        self._id_at = len(sample) - payload_bytes - 2
        self._qos = qos
        self._first = sample[0]
        self._rest = b""
        self.heard = Heard()

    def feed(self, data: bytes) -> bytes:
        """The answers to whole packets; what is left waits for the next bytes."""
        if self._rest:
            data = self._rest + data
        at, answers = 0, []
        while at < len(data):
            first = data[at]
            size = self._publish_bytes if first == self._first else ACK_BYTES
            count = run_length(data, at, size)
            if not count:
                break
            end = at + count * size
            if answer := self._take(first, data, at, end, count):
                answers.append(answer)
            at = end
        self._rest = data[at:]
        return answers[0] if len(answers) == 1 else b"".join(answers)

    def _take(self, first: int, data: bytes, at: int, end: int, count: int) -> bytes:
        heard = self.heard
        if first == self._first:
            heard.delivered += count
            if not self._qos:
                return b""
            begin, size = at + self._id_at, self._publish_bytes
            return acks(ANSWERS[self._qos], data, begin, end, size, count)
        match first:
            case 0x40 | 0x70:
                heard.done += count
                return b""
            case 0x50:
                answer = PUBREL
            case 0x62:
                heard.released += count
                answer = PUBCOMP
            case _:
                raise Refused(f"unexpected packet {data[at : at + 20]!r}")
        return acks(answer, data, at + 2, end, ACK_BYTES, count)


def run_length(data: bytes, at: int, size: int) -> int:
    """How many whole packets of this size begin with the same byte, one by one."""
    whole = (len(data) - at) // size
    firsts = data[at : at + whole * size : size]
    return whole - len(firsts.lstrip(data[at : at + 1]))


def acks(kind: int, data: bytes, begin: int, end: int, step: int, count: int) -> bytes:
    """One acknowledgement for every packet id, ``step`` bytes apart."""
    answer = bytearray(ACK_BYTES * count)
    answer[0::4] = bytes((kind,)) * count
    answer[1::4] = b"\x02" * count
    answer[2::4] = data[begin:end:step]
    answer[3::4] = data[begin + 1 : end : step]
    return bytes(answer)
