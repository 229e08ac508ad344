"""How a subscription stands: its place, what it owes, and how the journal hears of it.

Theory. A subscription is a *cursor* (one place per priority level) and the events in
front of it that are still *owed*: in flight, returned by a consumer that left, or
waiting for a retry. Everything else in front of the cursor is settled. So memory grows
with the window and never with the backlog, and the whole state fits into a few numbers
that the journal can keep. Changes are noted in ``owed.touched`` and ``Notes``.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush
from typing import TYPE_CHECKING

from penstock.delivery.cursor import Cursor, GetLevels
from penstock.delivery.handshake import Stage
from penstock.delivery.owed import Failed, Notes, Owed
from penstock.delivery.owed_book import OwedBook
from penstock.delivery.pages import Pages
from penstock.delivery.quarantine import Place, Quarantine
from penstock.model.failure import Failure
from penstock.model.policy import Policy

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer


class Standing:
    def __init__(
        self,
        number: int,
        subscriber: str,
        topic: str,
        policy: Policy,
        start: int,
        *,
        temporary: bool,
        notes: Notes,
    ) -> None:
        self.number = number
        self.subscriber = subscriber
        self.topic = topic
        self.policy = policy
        self.temporary = temporary
        self.owner = ""
        """The user who has made it; empty is nobody."""
        self.active = True
        """False: unsubscribed or suspended, with its position kept."""
        self.suspended = False
        self.ended = False
        """Whether it is gone for good, whoever still knows it."""
        self.cursor = Cursor(topic, policy.order, start)
        self.owed = OwedBook()
        self.errors: dict[int, list[Failure]] = {}
        """Why earlier tries of owed events failed."""
        self.amended: dict[int, bytes] = {}
        """Frames that are sent in place of stored events; see amend.py."""
        self.held: dict[int, Owed] = {}
        """Owed again, and sent when that is stored; see letters.Parcels."""
        self.consumers: list[Consumer] = []
        self.relaxed = False
        """Whether its topic is written without a sync: then so are settlements."""
        self.flying = 0
        self.misses = 0
        """How many events were gone when they were to be sent again."""
        self.armed_s = 0.0
        """When the broker looks at it next; 0 for never."""
        self._returned: list[Place] = []
        self._quarantine = Quarantine()
        self._later = 0
        self._gone: list[Failed] = []
        self._restored_runs: list[tuple[int, int, int]] = []
        self._notes = notes

    def wire(self, pages: Pages, levels: GetLevels) -> None:
        """Say where events come from; what is owed so far is to be sent again."""
        self.cursor.wire(pages, levels)
        self.relaxed = pages.relaxed(self.topic)
        for lo, hi, level in self._restored_runs:
            for offset in range(lo, hi):
                self.owe(offset, level, 1, Stage.WAITING)
                # Records list runs as a whole: none has this one for itself.
                self.owed.touched[offset] = None
        self._restored_runs = []
        waiting = self._line_up()
        self.flying = len(self.owed) - waiting

    def owe(self, offset: int, level: int, tries: int, stage: Stage) -> None:
        """Take up what the journal says is owed, before ``wire``."""
        one = Owed(offset, level)
        one.tries, one.stage, one.recorded = tries, stage, True
        self.owed.add(one)

    def take_up(
        self,
        settled: Iterable[int],
        owed: Iterable[tuple[int, int, int, int]],
        runs: list[tuple[int, int, int]],
    ) -> None:
        """Take up a record of the journal, before ``wire``."""
        for offset in settled:
            self.owed.forget(offset)
            self.errors.pop(offset, None)
            self.amended.pop(offset, None)
        for offset, level, tries, stage in owed:
            self.owe(offset, level, tries, Stage(stage))
            if not tries:  # it has begun anew
                self.errors.pop(offset, None)
        self._restored_runs = runs

    def keeps_qos(self, wanted: int) -> bool:
        """Whether its quality of service may not change to this one.

        A handshake of QoS 2 is more than acks, so one is never made the other; and
        nothing changes under somebody who consumes.
        """
        qos = self.policy.qos
        return qos != wanted and (bool(self.consumers) or 2 in (qos, wanted))

    def govern(self, policy: Policy) -> None:
        """Go on, by these rules from now on."""
        before, self.policy = self.policy, policy
        self.active, self.suspended = True, False
        if (before.counts_losses, before.tries) == (policy.counts_losses, policy.tries):
            return
        if policy.counts_losses and not before.counts_losses:
            self._forgive()
        self._line_up()

    # How it stands

    @property
    def credit(self) -> int:
        """How many events may be sent now."""
        return self.policy.window - self.flying - self._later

    @property
    def put_off(self) -> int:
        """How many events wait for the time of their next try."""
        return self._later

    @property
    def drained(self) -> bool:
        """Nothing is owed and nothing is left to be sent."""
        return not self.owed and self.cursor.next() is None

    def lag(self) -> int:
        """How many events are not settled."""
        return self.cursor.unsent() + len(self.owed)

    def position(self) -> int:
        """The lowest offset that is not settled."""
        return self.owed.lowest(self.cursor.lowest())

    def note_tries(self) -> None:
        """Have the tries of what was taken written before a consumer begins.

        Without a sync: it is the end of the process that must not hide a try, and
        what the operating system has outlives that.
        """
        self.note(urgent=True, sync=False)

    def note(self, *, urgent: bool = False, sync: bool = True) -> None:
        """Have the changes so far written, soon if somebody waits for it."""
        if self.temporary or self.ended:
            return
        notes = self._notes
        notes.dirty[self] = None
        if urgent:
            notes.urgent = True
            notes.sync = notes.sync or (sync and not self.relaxed)

    def last_failed(self, offset: int) -> int:
        """Which try of an owed event is known to have failed last; 0 for none."""
        errors = self.errors.get(offset)
        return errors[-1].tries if errors else 0

    def _forgive(self) -> None:
        """Count no tries that were lost while losses did not count."""
        for one in self.owed.singles():
            if one.stage is Stage.WAITING:
                one.tries = min(one.tries, self.last_failed(one.offset))
                self._touch(one)

    def _line_up(self) -> int:
        """Queue everything that is to be sent again; how many wait, for this or later.

        The rules that say who is a suspect may be others than before.
        """
        waiting = [one for one in self.owed.singles() if one.stage is Stage.WAITING]
        self._returned = []
        self._quarantine.empty()
        for one in waiting:
            if not one.due_s and one.offset not in self.held:
                self._quarantine.judge(
                    one.offset, self.policy, self.errors.get(one.offset)
                )
                self._queue(one)
        return len(waiting)

    @property
    def _held_up(self) -> bool:
        """Whether fresh events have to wait for one that is sent alone."""
        return self.policy.in_order and bool(self._quarantine)

    def _back(self) -> list[Place]:
        """The queue whose first event goes next of those that came back."""
        returned, alone = self._returned, self._quarantine.queue
        if alone and (not returned or alone[0] < returned[0]):
            return alone
        if returned and self._held_up and self._quarantine.precedes(returned[0]):
            return alone  # which is empty: one is out, and nothing may overtake it
        return returned

    def _queue(self, one: Owed) -> None:
        one.stage = Stage.WAITING
        place = (-one.level, one.offset)
        if one.offset in self._quarantine:
            self._quarantine.wait(place)
        else:
            heappush(self._returned, place)

    def _drop(self, one: Owed) -> None:
        self.owed.forget(one.offset)
        if self.errors and self.errors.pop(one.offset, None) is not None:
            self._quarantine.discard(one.offset)
        if self.amended:
            self.amended.pop(one.offset, None)
        if self.held:
            self.held.pop(one.offset, None)
        assert not (one.stage is Stage.WAITING and one.due_s), "put off, not given up"
        if one.stage is not Stage.WAITING:
            self.flying -= 1
        if one.recorded:
            self.owed.touched[one.offset] = None
        else:
            self.owed.touched.pop(one.offset, None)

    def _touch(self, one: Owed) -> None:
        if not self.temporary:
            self.owed.touched[one.offset] = None
