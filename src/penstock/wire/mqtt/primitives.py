"""Numbers, text and binary data, as every MQTT packet is made of them.

    byte, two bytes, four bytes   unsigned, big-endian
    variable byte integer         7 bits a byte, lowest first, 0x80: one more follows;
                                  4 bytes at most
    text                          two bytes of length, then UTF-8
    binary data                   two bytes of length, then bytes

A ``PacketBody`` is a packet behind its fixed header, read once from front to end.
"""

from __future__ import annotations

from codecs import utf_8_decode
from typing import Final

from penstock.errors import LocalProtocolError
from penstock.wire.mqtt.reasons import Malformed, Reason

MAX_VARINT: Final = 268_435_455
MAX_FIELD_BYTES: Final = 65_535
# The shortest, with a byte in front: two empty texts.
_PAIR_BYTES: Final = 5


class PacketBody:
    """What is left to read of one packet; every read raises Malformed past its end."""

    __slots__ = ("_data", "at", "end", "packet")

    def __init__(self, data: bytes, at: int, end: int, packet: str) -> None:
        self._data = data
        self.at = at
        self.end = end
        self.packet = packet

    def byte(self) -> int:
        return self._data[self._step(1)]

    def two_bytes(self) -> int:
        at = self._step(2)
        return self._data[at] << 8 | self._data[at + 1]

    def four_bytes(self) -> int:
        at = self._step(4)
        return int.from_bytes(self._data[at : at + 4], "big")

    def varint(self) -> int:
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                # MQTT-1.5.5-1
                if not byte and shift:
                    raise self.malformed("a number with more bytes than it needs")
                return value
        raise self.malformed("a number of more than 4 bytes")

    def text(self) -> str:
        length = self.two_bytes()
        at = self._step_text(length)
        return self._decoded(self._data[at : at + length])

    def _decoded(self, data: bytes, *, whole: bool = True) -> str:
        """Text, or its beginning; raises Malformed."""
        wrong = None
        try:
            text, _ = utf_8_decode(data, "strict", whole)
        except UnicodeDecodeError as error:
            wrong = error.start
            text = data[:wrong].decode()  # what is wrong first counts
        if "\0" in text:
            raise self.malformed("text with a NUL character")  # MQTT-1.5.4-2
        if wrong is not None:  # MQTT-1.5.4-1: surrogates are not UTF-8 either.
            raise self.malformed(f"text that is not UTF-8 (byte {wrong})")
        return text

    def binary(self) -> bytes:
        length = self.two_bytes()
        at = self._step(length)
        return self._data[at : at + length]

    def pair(self) -> tuple[str, str]:
        return self.text(), self.text()  # MQTT-1.5.7-1

    def pairs(self, mark: int, most: int) -> list[tuple[str, str]]:
        """The pairs that follow, each behind the byte ``mark``, ``most`` of them.

        Without a call for each number: a peer that wants to can send thousands of them.
        It ends in front of one that is not complete, or wrong.
        """
        data, at, end = self._data, self.at, min(self.end, len(self._data))
        found: list[tuple[str, str]] = []
        while len(found) < most and at + _PAIR_BYTES <= end and data[at] == mark:
            middle = at + 3 + (data[at + 1] << 8 | data[at + 2])
            if middle + 2 > end:
                break
            behind = middle + 2 + (data[middle] << 8 | data[middle + 1])
            if behind > end or 0 in data[at + 3 : middle] + data[middle + 2 : behind]:
                break
            try:
                name = data[at + 3 : middle].decode()
                found.append((name, data[middle + 2 : behind].decode()))
            except UnicodeDecodeError:
                break
            self.at = at = behind
        return found

    def field(self) -> bytes:
        """As ``binary``, its length included."""
        at = self.at
        self._step(self.two_bytes())
        return self._data[at : self.at]

    def rest(self) -> bytes:
        at, self.at = self.at, self.end
        return self._data[at : self.end]

    def part(self, length: int) -> PacketBody:
        """The next ``length`` bytes, to be read by themselves."""
        at = self._step(length)
        return PacketBody(self._data, at, self.at, self.packet)

    def finish(self) -> None:
        """Raise Malformed if something is left."""
        if self.at < self.end:
            raise self.malformed(f"{self.end - self.at} bytes behind its end")

    def malformed(self, what: str) -> Malformed:
        return Malformed(Reason.MALFORMED_PACKET, f"{self.packet} has {what}")

    def wrong(self, what: str) -> Malformed:
        """The error for what can be read, and is not allowed."""
        return Malformed(Reason.PROTOCOL_ERROR, f"{self.packet} has {what}")

    def _step(self, length: int) -> int:
        at = self.at
        self.at = at + length
        if self.at > self.end:
            missing = self.at - self.end
            raise self.malformed(f"an end {missing} bytes before that of a field")
        return at

    def _step_text(self, length: int) -> int:
        return self._step(length)


class Unfinished(Exception):
    """What came of a packet is right so far."""


class PartialBody(PacketBody):
    """A packet that has not come to its end; reads past ``came`` raise Unfinished."""

    __slots__ = ("_came",)

    def __init__(self, data: bytes, at: int, end: int, packet: str) -> None:
        super().__init__(data, at, end, packet)
        self._came = len(data)

    def part(self, length: int) -> PacketBody:
        at = super()._step(length)
        return PartialBody(self._data, at, self.at, self.packet)

    def _step(self, length: int) -> int:
        at = super()._step(length)
        if self.at > self._came:
            raise Unfinished
        return at

    def _step_text(self, length: int) -> int:
        at = self.at
        try:
            return self._step(length)
        except Unfinished:
            self._decoded(self._data[at:], whole=False)
            raise


def varint(value: int) -> bytes:
    """``value`` as a variable byte integer; raises LocalProtocolError if too large."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    if value > MAX_VARINT:
        raise LocalProtocolError("mqtt", f"number {value} exceeds {MAX_VARINT}")
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def binary(data: bytes) -> bytes:
    """``data`` with its length; raises LocalProtocolError if it is too long."""
    if len(data) > MAX_FIELD_BYTES:
        text = f"field of {len(data)} bytes exceeds {MAX_FIELD_BYTES}"
        raise LocalProtocolError("mqtt", text)
    return len(data).to_bytes(2, "big") + data


def text(string: str) -> bytes:
    """``string`` in UTF-8 with its length."""
    return binary(string.encode())
