"""Dead letters of the pipeline: events of the firehose that are no tweets, and why.

Small ones come with the note of the task that met them. There may be many of them in a
batch, and large ones: those are read one after the other, of each no more than its
beginning is kept (the whole is in the firehose, and the letter says where), and they
are told in parts that the broker takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.client import Client
from penstock.client.fetching import Range
from penstock.client.lasting import LastingConnection
from penstock.errors import OffsetOutOfRange
from penstock.pipeline.portion import Stray

# What is kept of an event.
MAX_LETTER_BYTES = 1 << 20
# Of letters that are told at once: far below what a broker takes in one message.
PART_BYTES = 8 << 20
PART_LETTERS = 1000


@dataclass(frozen=True, slots=True)
class Letter:
    """The event at an offset of the firehose."""

    offset: int
    reason: str
    raw: bytes


def letters(
    line: LastingConnection, topic: str, strays: Sequence[Stray]
) -> Iterator[Letter]:
    """The letters of strays. Raises NotRunning, ConnectionLost, ServerRefused."""
    for one in strays:
        raw = _read(line, topic, one.offset) if one.raw is None else one.raw
        yield _letter(topic, one, raw)


def parts(found: Iterable[Letter]) -> Iterator[list[Letter]]:
    """The letters in lists that can be told at once."""
    part: list[Letter] = []
    size = 0
    for letter in found:
        size += len(letter.raw)
        if part and (size > PART_BYTES or len(part) == PART_LETTERS):
            yield part
            part, size = [], len(letter.raw)
        part.append(letter)
    if part:
        yield part


def _read(line: LastingConnection, topic: str, offset: int) -> bytes | None:
    """The payload of an event; None if retention was faster."""

    def fetch(client: Client) -> Range:
        return client.fetch(topic, offset, offset + 1)

    try:
        found = line.say(fetch)
    except OffsetOutOfRange:
        return None
    payloads = (one.payload for one in found.events() if one.offset == offset)
    return next(payloads, None)


def _letter(topic: str, stray: Stray, payload: bytes | None) -> Letter:
    offset, reason = stray.offset, stray.reason
    if payload is None:
        return Letter(offset, f"{reason}; event {offset} of {topic} is removed", b"")
    if len(payload) > MAX_LETTER_BYTES:
        reason += f"; this is the beginning of event {offset} of {topic}"
    return Letter(offset, reason, payload[:MAX_LETTER_BYTES])
