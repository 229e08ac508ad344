"""Lines of events into a topic, and what is to be said about each.

Good lines are stored together; a bad one is refused by its number and harms no other.
A line that its sender did not end counts only if the body was ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from penstock.access.account import Account
from penstock.broker.promised import is_lost
from penstock.errors import InvalidPayload, PenstockError, TooLarge, WriteFailed
from penstock.http.house import House
from penstock.http.incoming import Arrived, Incoming, arrived, arrived_lines, read_one
from penstock.http.pacing import paced
from penstock.http.storing import StoredEvents, store_each, store_in_time
from penstock.http.trace_context import put_into
from penstock.wire.lines import TOO_LONG, LineSplitter

# Lines that are looked at one by one before others have a turn.
SLICE = 1000


class Refused(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a line that was not stored; lines are counted from 1."""

    error: str
    detail: str
    line: int
    hint: str = ""


class Answers(NamedTuple):
    """What is said about some lines, once their group is on disk; 0: at once."""

    lines: int
    group: int
    said: Callable[[], bytes]
    lost: Callable[[WriteFailed], bytes]


class LineIntake:
    """Stores lines as they come; answers are about those that ended."""

    def __init__(
        self,
        house: House,
        topic: str,
        producer: str | None,
        context: Mapping[str, str] = MappingProxyType({}),
        account: Account | None = None,
        most_s: float | None = None,
    ) -> None:
        """``context``: the trace that the events belong to, as headers.

        ``account`` is of the user who sends them; ``most_s``: how long it may have to
        wait, if it sends faster than it may.
        """
        self._house = house
        self._topic = topic
        self._producer = producer
        self._context = context
        self._account = account
        self._most_s = most_s
        self._limit = house.options.max_body_bytes
        self._splitter = LineSplitter(self._limit)
        self.lines = 0
        """How many lines there were so far."""

    async def take_in(self, data: bytes, *, last: bool) -> Answers | None:
        """Store the lines that this completes; ``last``: all of them are complete."""
        if last and not data.endswith(b"\n"):
            data += b"\n"
        block = self._splitter.block(data)
        if block is None:
            return await self._one_by_one(self._splitter.feed(data))
        if not block:
            return None
        now_ms = int(self._house.promises.now_s() * 1000)
        new = arrived_lines(block, now_ms, self._producer)
        if new is None:
            return await self._one_by_one(block.split(b"\n")[:-1])
        count, stored_ = block.count(b"\n"), len(new.columns)
        numbers: Sequence[int] = range(self.lines + 1, self.lines + 1 + count)
        if stored_ != count or not _is_even(block, count):
            lines = block.split(b"\n")[:-1]
            pairs = zip(numbers, map(bytes.strip, lines), strict=True)
            numbers = [number for number, line in pairs if line]
            # An event over two lines, or two in one.
            if len(numbers) != stored_ or not _all_objects(lines):
                return await self._one_by_one(lines)
        if not stored_:
            self.lines += count
            return None
        put_into(new.columns, self._context)
        try:
            stored = await store_in_time(
                self._house, self._topic, new, self._account, self._most_s
            )
        except PenstockError:
            return await self._one_by_one(block.split(b"\n")[:-1])
        self.lines += count
        broker = self._house.broker
        return Answers(
            stored_,
            stored.group,
            lambda: "".join(said(stored.offsets, stored.ids(broker))).encode(),
            lambda error: b"".join(refusal(error, number) for number in numbers),
        )

    async def _one_by_one(self, lines: Sequence[bytes]) -> Answers | None:
        """Lines of which some are bad: the others are stored, each answer in place."""
        places: dict[int, tuple[StoredEvents, int]] = {}
        refusals: dict[int, bytes] = {}
        for first in range(0, len(lines), SLICE):
            await self._house.promises.room()
            # Of lines that are stored in part no client is told to come again.
            await paced(self._account, None if first else self._most_s)
            part = lines[first : first + SLICE]
            rows = self._read(part, refusals)
            places.update(self._stored_of(rows, refusals))
            self.lines += len(part)
            await asyncio.sleep(0)  # others have a turn
        return self._answers(places, refusals)

    def _read(
        self, lines: Sequence[bytes], refusals: dict[int, bytes]
    ) -> list[tuple[int, Incoming]]:
        """The good ones with their numbers; those that are refused are added."""
        rows: list[tuple[int, Incoming]] = []
        for number, line in enumerate(lines, self.lines + 1):
            if line == TOO_LONG:
                too_long = TooLarge(
                    "a line", self._limit + 1, self._limit, "http.max_body_bytes"
                )
                refusals[number] = refusal(too_long, number)
            elif line.strip():
                try:
                    rows.append((number, read_one(line)))
                except PenstockError as error:
                    refusals[number] = refusal(error, number)
        return rows

    def _stored_of(
        self, rows: list[tuple[int, Incoming]], refusals: dict[int, bytes]
    ) -> dict[int, tuple[StoredEvents, int]]:
        """Store good rows: line -> where it is; those that are refused are added."""
        promises = self._house.promises
        now_s = promises.now_s()
        try:
            new = self._arrived([row for _, row in rows], now_s)
        except PenstockError:
            rows = self._that_make_sense(rows, refusals)
            new = self._arrived([row for _, row in rows], now_s)
        if not rows:
            return {}
        put_into(new.columns, self._context)
        pieces, refused = store_each(
            self._house.broker, self._topic, new, now_s, self._account
        )
        promises.kick()
        for place, error in refused.items():
            alone = error.at(0) if isinstance(error, InvalidPayload) else error
            refusals[rows[place][0]] = refusal(alone, rows[place][0])
        return {
            rows[place][0]: (stored, at)
            for places, stored in pieces
            for at, place in enumerate(places)
        }

    def _arrived(self, rows: list[Incoming], now_s: float) -> Arrived:
        return arrived(rows, int(now_s * 1000), self._producer)

    def _that_make_sense(
        self, rows: list[tuple[int, Incoming]], refusals: dict[int, bytes]
    ) -> list[tuple[int, Incoming]]:
        """Those that can be events; the others are added to what is refused."""
        found = []
        for number, row in rows:
            try:
                self._arrived([row], 0.0)
                found.append((number, row))
            except PenstockError as error:
                refusals[number] = refusal(error, number)
        return found

    def _answers(
        self, places: dict[int, tuple[StoredEvents, int]], refusals: dict[int, bytes]
    ) -> Answers | None:
        if not places and not refusals:
            return None
        log = self._house.broker.log
        group = max((stored.group for stored, _ in places.values()), default=0)

        def said_() -> bytes:
            answers = {**refusals, **self._said_of(places)}
            return b"".join([answers[number] for number in sorted(answers)])

        def lost(error: WriteFailed) -> bytes:
            """Those in a group of their own may have been written all the same."""
            kept = {
                number: place
                for number, place in places.items()
                if not is_lost(log, place[0].group)
            }
            gone = {number: refusal(error, number) for number in places}
            answers = {**refusals, **gone, **self._said_of(kept)}
            return b"".join([answers[number] for number in sorted(answers)])

        return Answers(len(places) + len(refusals), group, said_, lost)

    def _said_of(self, places: dict[int, tuple[StoredEvents, int]]) -> dict[int, bytes]:
        """Line -> what is said of it."""
        lines: dict[int, list[str]] = {}
        broker = self._house.broker
        for stored, _ in places.values():
            if id(stored) not in lines:
                lines[id(stored)] = said(stored.offsets, stored.ids(broker))
        return {
            number: lines[id(stored)][place].encode()
            for number, (stored, place) in places.items()
        }


def _is_even(block: bytes, lines: int) -> bool:
    """Whether every line begins and ends as an object does; then it holds whole ones.

    Behind the end of an object within another one nothing begins.
    """
    ends = block.startswith(b"{") and block.endswith(b"}\n")
    return ends and block.count(b"}\n{") == lines - 1


def _all_objects(lines: Sequence[bytes]) -> bool:
    """The same of lines with white space around them, some of them empty."""
    texts = filter(None, map(bytes.strip, lines))
    return all(text.startswith(b"{") and text.endswith(b"}") for text in texts)


def said(offsets: Sequence[int], ids: list[str | None]) -> list[str]:
    """A line for each event that is stored."""
    texts = [id_ for id_ in ids if id_ is not None]
    joined = "".join(texts)
    if len(texts) == len(ids) and joined.isascii() and not _needs_care(joined):
        pairs = zip(offsets, texts, strict=True)
        return [f'{{"offset":{offset},"id":"{id_}"}}\n' for offset, id_ in pairs]
    rows, encode = zip(offsets, ids, strict=True), msgspec.json.encode
    return [encode({"offset": at, "id": id_}).decode() + "\n" for at, id_ in rows]


def refusal(error: PenstockError, line: int) -> bytes:
    """The line for one that was not stored."""
    refused = Refused(
        error=type(error).__name__, detail=error.for_client, line=line, hint=error.hint
    )
    return msgspec.json.encode(refused) + b"\n"


def _needs_care(text: str) -> bool:
    return '"' in text or "\\" in text or not text.isprintable()
