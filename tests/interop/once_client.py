"""A publisher and a consumer of QoS 2 that may be killed at any moment.

    python once_client.py publisher PORT VERSION JOURNAL COUNT
    python once_client.py consumer PORT VERSION JOURNAL COUNT

What a client has to know over its own death is a line in its journal before it acts
on it. A publisher notes number and packet id before PUBLISH, and PUBREC before PUBREL;
a consumer notes a message before PUBREC, and PUBREL before PUBCOMP. So a journal says
what the client was given, and the next life goes on where the last one ended. Both end
when COUNT messages are over.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from pathlib import Path

TOPIC = b"once/numbers"
WINDOW = 20
DEADLINE_S = 120.0
CONNACK, PUBLISH, PUBREC, PUBREL, PUBCOMP, SUBACK = 2, 3, 5, 6, 7, 9


class Journal:
    """Lines that are there as soon as ``note`` has returned, whoever is killed."""

    def __init__(self, path: Path) -> None:
        self.lines = path.read_text().splitlines() if path.exists() else []
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


class Client:
    """One connection after the other, to a broker that comes and goes."""

    def __init__(self, name: bytes, port: int, version: int) -> None:
        self.name, self.port, self.version = name, port, version
        self._rest = b""

    def connect(self) -> bool:
        """Wait for a broker and its CONNACK; whether it had the session."""
        while True:
            try:
                self.sock = socket.create_connection(("127.0.0.1", self.port), 5)
                # A broker that stays silent has not been told to.
                self.sock.settimeout(30)
                self._rest = b""
                self.sock.sendall(self._hello())
                kind, _, body = self.packet()
            except ConnectionError:
                time.sleep(0.005)  # it is on its way
                continue
            assert kind == CONNACK and body[1] == 0, (kind, body)
            return bool(body[0])

    def packet(self) -> tuple[int, int, bytes]:
        """Kind, flags and body of the next packet; ConnectionError at the end."""
        while True:
            if found := self._parsed():
                return found
            data = self.sock.recv(1 << 16)
            if not data:
                raise ConnectionResetError("closed")
            self._rest += data

    def send(self, first: int, body: bytes) -> None:
        self.sock.sendall(bytes((first,)) + length(len(body)) + body)

    def properties(self) -> bytes:
        """None, in version 5; nothing before."""
        return b"\x00" if self.version == 5 else b""

    def _hello(self) -> bytes:
        kept = b"\x05\x11" + struct.pack("!I", 3600) if self.version == 5 else b""
        level = 5 if self.version == 5 else 4
        body = text(b"MQTT") + bytes((level, 0)) + b"\x00\x00" + kept + text(self.name)
        return b"\x10" + length(len(body)) + body

    def _parsed(self) -> tuple[int, int, bytes] | None:
        data, size, shift = self._rest, 0, 0
        for at in range(1, len(data)):
            size |= (data[at] & 0x7F) << shift
            shift += 7
            if data[at] < 0x80:
                end = at + 1 + size
                if len(data) < end:
                    return None
                self._rest = data[end:]
                return data[0] >> 4, data[0] & 15, data[at + 1 : end]
        return None


def publisher(client: Client, journal: Journal, count: int) -> None:
    unreceived, unreleased, numbers = remembered(journal)
    following = numbers
    while following < count or unreceived or unreleased:
        try:
            present = client.connect()
            assert present or not numbers, "the broker forgot the session"
            # In the order they were sent first, MQTT-4.4.0-1 and 4.6.0-1.
            for packet_id, number in unreceived.items():
                publish(client, packet_id, number, again=True)
            for packet_id in unreleased:
                client.send(0x62, struct.pack("!H", packet_id))
            while following < count or unreceived or unreleased:
                while following < count and len(unreceived) + len(unreleased) < WINDOW:
                    packet_id = following % 60_000 + 1
                    journal.note("P", packet_id, following)
                    numbers = following + 1
                    unreceived[packet_id] = following
                    following += 1
                    publish(client, packet_id, unreceived[packet_id], again=False)
                kind, _, body = client.packet()
                (packet_id,) = struct.unpack("!H", body[:2])
                if kind == PUBREC and packet_id in unreceived:
                    journal.note("R", packet_id)
                    unreleased[packet_id] = unreceived.pop(packet_id)
                    client.send(0x62, struct.pack("!H", packet_id))
                elif kind == PUBCOMP and packet_id in unreleased:
                    journal.note("C", packet_id)
                    del unreleased[packet_id]
        except ConnectionError:
            continue


def remembered(journal: Journal) -> tuple[dict[int, int], dict[int, int], int]:
    """Packet id -> number: without a PUBREC, without a PUBCOMP; the next number."""
    unreceived: dict[int, int] = {}
    unreleased: dict[int, int] = {}
    following = 0
    for line in journal.lines:
        word, *values = line.split(" ")
        packet_id = int(values[0])
        match word:
            case "P":
                unreceived[packet_id] = int(values[1])
                following = int(values[1]) + 1
            case "R":
                unreleased[packet_id] = unreceived.pop(packet_id)
            case "C":
                del unreleased[packet_id]
    return unreceived, unreleased, following


def publish(client: Client, packet_id: int, number: int, *, again: bool) -> None:
    body = text(TOPIC) + struct.pack("!H", packet_id) + client.properties()
    client.send(0x3C if again else 0x34, body + b"%d" % number)


def consumer(client: Client, journal: Journal, count: int) -> None:
    got = sum(line.startswith("M ") for line in journal.lines)
    held: set[int] = set()
    for line in journal.lines:
        word, name, *_ = line.split(" ")
        (held.add if word == "M" else held.discard)(int(name))
    subscribed = bool(journal.lines)
    while got < count or held:
        try:
            present = client.connect()
            assert present or not subscribed, "the broker forgot the session"
            topic_filter = b"\x00\x01" + client.properties() + text(TOPIC) + b"\x02"
            client.send(0x82, topic_filter)
            while got < count or held:
                kind, flags, body = client.packet()
                if kind == SUBACK:
                    if not subscribed:
                        journal.note("S", 0)
                        subscribed = True
                elif kind == PUBLISH:
                    packet_id, payload = unpacked(client, flags, body)
                    if packet_id not in held:
                        journal.note("M", packet_id, payload.decode())
                        held.add(packet_id)
                        got += 1
                    client.send(0x50, struct.pack("!H", packet_id))
                elif kind == PUBREL:
                    (packet_id,) = struct.unpack("!H", body[:2])
                    journal.note("D", packet_id)
                    held.discard(packet_id)
                    client.send(0x70, body[:2])
        except ConnectionError:
            continue


def unpacked(client: Client, flags: int, body: bytes) -> tuple[int, bytes]:
    assert flags >> 1 & 3 == 2, f"a delivery of QoS {flags >> 1 & 3}"
    at = 2 + struct.unpack("!H", body[:2])[0]
    assert body[2:at] == TOPIC, body
    (packet_id,) = struct.unpack("!H", body[at : at + 2])
    at += 2
    if client.version == 5:
        at += 1 + body[at]  # properties are short here
    return packet_id, body[at:]


def text(data: bytes) -> bytes:
    return struct.pack("!H", len(data)) + data


def length(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(0x80 | number & 0x7F)
        number >>= 7
    parts.append(number)
    return bytes(parts)


if __name__ == "__main__":
    role, port, version, path, count = sys.argv[1:]
    client = Client(role.encode(), int(port), int(version))
    {"publisher": publisher, "consumer": consumer}[role](
        client, Journal(Path(path)), int(count)
    )
