"""Dead letters of the pipeline: events of the firehose that are no tweets, and why.

There may be many of them in a batch, and large ones. So they are read one after the
other, of each no more than its beginning is kept (the whole is in the firehose, and the
letter says where), and they are told in parts that the broker takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.client import Client
from penstock.client.fetching import Range
from penstock.client.line import Line
from penstock.errors import ServerRefused

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
    line: Line, topic: str, strays: Sequence[tuple[int, str]]
) -> Iterator[Letter]:
    """The letters of strays: offset and reason of each, offsets ascending.

    Raises NotRunning, ConnectionLost, ServerRefused.
    """
    reasons = dict(strays)
    end = max(reasons, default=-1) + 1
    read_to = 0
    for offset in reasons:
        if offset < read_to:
            continue
        found, read_to = _read(line, topic, offset, end)
        for one in range(offset, read_to):
            if one in reasons:
                yield _letter(topic, one, reasons[one], found.get(one))


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


def _read(
    line: Line, topic: str, offset: int, end: int
) -> tuple[dict[int, bytes], int]:
    """Payloads by offset from there on, and up to where these are all."""

    def fetch(client: Client) -> Range:
        return client.fetch(topic, offset, end)

    try:
        found = line.say(fetch)
    except ServerRefused as error:
        if error.error != "OffsetOutOfRange":
            raise
        return {}, offset + 1  # retention was faster
    payloads = {
        event.offset: event.payload
        for batch in found.batches
        for event in batch.events()
    }
    return payloads, max(found.next_offset, offset + 1)


def _letter(topic: str, offset: int, reason: str, payload: bytes | None) -> Letter:
    if payload is None:
        return Letter(offset, f"{reason}; event {offset} of {topic} is removed", b"")
    if len(payload) > MAX_LETTER_BYTES:
        reason += f"; this is the beginning of event {offset} of {topic}"
    return Letter(offset, reason, payload[:MAX_LETTER_BYTES])
