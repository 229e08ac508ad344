"""The maze itself, shared by all its connections: source in, clients out.

    receive -> parse -> (opening of a new source) -> reorder -> route -> publish

A whole receive goes through each step at once. Clients are told without waiting for
the disk, as the protocol knows no acknowledgement; the events are published in the
order they were processed in, and with the state of the maze they outlive the process.

Whether a new source goes on or starts afresh, only its event number 1 tells, and events
are shuffled. So the first events are kept until it is there, or so many have come
without it that it will not come, or the source has had its time.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeVar

from penstock.broker.log_throttle import LogThrottle
from penstock.broker.publishing import Accepted
from penstock.errors import Backlogged, BeingDeleted
from penstock.gateway.maze.letters import DeadLetterBox, MazeLetters
from penstock.gateway.maze.reorder import Reorder, Reordered
from penstock.gateway.maze.router import NO_KIND, MazeRouter, RoutedLine
from penstock.gateway.maze.state import MazeState
from penstock.gateway.options import MazeOptions
from penstock.log import Columns
from penstock.wire.maze import parse

T = TypeVar("T")


class Verdict(Enum):
    AFRESH = auto()
    GOES_ON = auto()


class FirstEvents(Generic[T]):
    """Keeps at most ``window`` events and what came with the last of them."""

    def __init__(self, window: int, wait_s: float) -> None:
        self.numbers: list[int] = []
        self.items: list[T] = []
        self._window = window
        self._wait_s = wait_s
        self._since_s = 0.0

    def take(self, numbers: list[int], items: list[T], now_s: float) -> Verdict | None:
        """Keep events, and say what the source does once that is clear."""
        if not numbers:
            return None
        overdue = self.overdue(now_s)
        if not self.numbers:
            self._since_s = now_s
        room = self._window - len(self.numbers)
        self.numbers += numbers
        self.items += items
        if overdue:
            return Verdict.GOES_ON
        if 1 in numbers[:room]:
            return Verdict.AFRESH
        return Verdict.GOES_ON if len(self.numbers) >= self._window else None

    def overdue(self, now_s: float) -> bool:
        """Whether the source sent something and has had its time."""
        return bool(self.numbers) and now_s - self._since_s >= self._wait_s


# Events that may wait while the log is behind, for as long as it takes a server to
# stop reading: a few large receives.
MAX_UNPUBLISHED = 200_000

logger = logging.getLogger(__name__)


class MazeBroker(DeadLetterBox, Protocol):
    """What the maze wants of the broker."""

    @property
    def awake(self) -> dict[Any, None]: ...
    @property
    def throttle(self) -> LogThrottle: ...
    def accept(self, topic: str, events: Columns, /) -> Accepted: ...


class MazeHub:
    """To be made when the state has caught up with its topic.

    ``unregistered`` counts clients that are connected and have not sent their id: they
    want to be heard before the next events are. ``arrivals`` counts all that ever
    connected: as long as it grows, more may be on their way in.
    """

    def __init__(
        self, broker: MazeBroker, state: MazeState, options: MazeOptions
    ) -> None:
        self.broker = broker
        self.options = options
        self.unregistered = 0
        self.arrivals = 0
        self.letters = MazeLetters(broker)
        self.router = MazeRouter(
            state.followers, self.letters, store_absent=options.store_absent
        )
        self._state = state
        self._reorder: Reorder[RoutedLine] = Reorder(
            options.hold_back, options.gap_s, state.expected
        )
        self._opening: FirstEvents[RoutedLine] | None = None
        self._source: object | None = None
        self._unpublished: list[bytes] = []

    @property
    def absent(self) -> int:
        """Notifications whose client was not there to take them."""
        return self.router.absent

    @property
    def backlogged(self) -> bool:
        """Whether anything waits for the log: a reason to read no more for now."""
        return bool(self._unpublished or self.letters)

    def source_connected(self, source: object) -> bool:
        """False if another source is connected: there is one at a time."""
        if self._source is not None:
            return False
        self._source = source
        if self._reorder.expected > 1:
            options = self.options
            self._opening = FirstEvents(options.restart_window, options.gap_s)
        return True

    def source_left(self, now_s: float) -> None:
        """Nothing more will come: process what was held back, whatever is missing."""
        try:
            if self._opening is not None:
                self._decide(Verdict.GOES_ON, now_s)
            self._process(self._reorder.flush(), now_s)
        finally:
            self._source = None

    def receive(self, lines: list[bytes], now_s: float) -> None:
        """Process lines of the source, without their newlines."""
        numbers, items = self._parsed(lines)
        if self._opening is None:
            self._process(self._reorder.take(numbers, items, now_s), now_s)
            return
        verdict = self._opening.take(numbers, items, now_s)
        if verdict is not None:
            self._decide(verdict, now_s)

    def tick(self, now_s: float) -> None:
        """Give up what was waited for too long; to be called every second or so."""
        if self._opening is not None and self._opening.overdue(now_s):
            self._decide(Verdict.GOES_ON, now_s)
        self._process(self._reorder.expire(now_s), now_s)
        self.letters.flush()

    def catch_up(self, now_s: float) -> None:
        """Store what waits, as far as the log takes it by now."""
        if self._unpublished:
            self._publish(now_s)
        self.letters.flush()

    def _parsed(self, lines: list[bytes]) -> tuple[list[int], list[RoutedLine]]:
        """Numbers and events of the lines that have them; the others are refused."""
        rows, raws, bad = parse(lines)
        items: list[RoutedLine] = list(zip(rows, raws, strict=True))
        for raw, number, reason in bad:
            self.letters.keep(reason, raw)
            if number is not None:
                # The number is used up; the line is kept already.
                items.append(((number, NO_KIND, 0, 0), b""))
        return [row[0] for row, _ in items], items

    def _decide(self, verdict: Verdict, now_s: float) -> None:
        assert self._opening is not None
        numbers, items = self._opening.numbers, self._opening.items
        self._opening = None
        if verdict is Verdict.AFRESH:
            self.broker.throttle.log(
                logger,
                logging.INFO,
                "a new maze source starts afresh",
                extra={"action": "maze_restarted"},
            )
            self._reorder.restart()
            self._state.restart()
        self._process(self._reorder.take(numbers, items, now_s), now_s)

    def _process(self, taken: Reordered[RoutedLine], now_s: float) -> None:
        expected = self._reorder.expected
        for row, raw in taken.late:
            if raw:
                reason = f"number {row[0]} is old or came twice, next is {expected}"
                self.letters.keep(reason, raw)
        if taken.gaps:
            _report(self.broker.throttle, taken.gaps)
        if taken.ready:
            self.router.route(taken.ready)
            self._state.expected = expected
            self._unpublished += [raw.rstrip() for _, raw in taken.ready if raw]
        if self._unpublished:
            self._publish(now_s)

    def _publish(self, now_s: float) -> None:
        columns = Columns(self._unpublished, int(now_s * 1000))
        try:
            outcome = self.broker.accept(self.options.topic, columns)
        except (Backlogged, BeingDeleted):
            if len(self._unpublished) > MAX_UNPUBLISHED:
                raise
            return  # it is tried again when there is room, or with a tick
        lines, self._unpublished = self._unpublished, []
        for place, refusal in sorted(outcome.refused.items()):
            if isinstance(refusal, (Backlogged, BeingDeleted)):
                self._unpublished.append(lines[place])
            else:
                self.letters.keep(str(refusal), lines[place])
        for piece in outcome.pieces:
            self._state.published(piece.offsets[-1] + 1)


def _report(throttle: LogThrottle, gaps: list[tuple[int, int]]) -> None:
    """Once for all that is given up together, or a lossy source floods the log."""
    first, last = gaps[0][0], gaps[-1][1]
    missing = sum(high - low + 1 for low, high in gaps)
    throttle.log(
        logger,
        logging.WARNING,
        "maze events from %d to %d did not come: %d missing, skipped",
        first,
        last,
        missing,
        extra={
            "action": "maze_gap_skipped",
            "first": first,
            "last": last,
            "missing": missing,
        },
    )
