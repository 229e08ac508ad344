"""Reads the panics of streams, which the ingest counts in a topic of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import msgspec

from penstock.client import Client
from penstock.client.lasting import LastingConnection
from penstock.errors import OffsetOutOfRange

TOPIC = "pipeline_samples"


class Sample(msgspec.Struct, frozen=True):
    kind: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Panics:
    """Reads how many panics there were, and when."""

    line: LastingConnection

    def __call__(self, offset: int, to_ms: int) -> tuple[int, list[tuple[int, int]]]:
        """From an offset on, up to a time: the next one, and milliseconds and counts.

        What is there any more, if retention was faster.
        """
        return self.line.say(lambda client: _there(client, offset, to_ms))


def _there(
    client: Client, offset: int, to_ms: int
) -> tuple[int, list[tuple[int, int]]]:
    try:
        return _panics(client, offset, to_ms)
    except OffsetOutOfRange:
        topic = cast(dict[str, int], client.ask("topics.show", name=TOPIC))
    return _panics(client, topic["start_offset"], to_ms)


def _panics(
    client: Client, offset: int, to_ms: int
) -> tuple[int, list[tuple[int, int]]]:
    found: list[tuple[int, int]] = []
    for part in client.fetch_all(TOPIC, offset, 1 << 62):
        for event in part.events():
            if event.timestamp_ms >= to_ms:
                return offset, found
            count = _count(event.payload)
            if count:
                found.append((event.timestamp_ms, count))
            offset = event.offset + 1
    return offset, found


def _count(payload: bytes) -> int:
    """How many panics it tells; 0 for what others have written to the topic."""
    try:
        sample = _decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0
    return sample.count if sample.kind == "panics" else 0


_decode = msgspec.json.Decoder(Sample).decode
