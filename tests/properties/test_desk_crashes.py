"""Whatever is done at the desk, whenever the power goes: nothing is lost or doubled.

After every crash and every commit, for every event that one subscriber has to handle:

- it is owed, or it has one open letter, or it was handled or dropped: one of these;
- a letter is closed if the audit trail says by whom, and the trail says so once;
- an event is sent once more for every time that the trail says so, and no more.

Whoever is told that it was not stored will not see it sent.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from penstock.delivery.consumer import Consumer
from penstock.desk.views.letters import Done
from penstock.model.failure import Failure
from tests.unit.desk.letter_scene import lose
from tests.unit.desk.office import Office

EVENTS = 12
STEPS = 60
SEEDS = range(25)


class Desk:
    """An office with one subscriber that fails as chance has it."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.office = Office(folder)
        self.random = random
        self.done: set[int] = set()
        """Events that were ever handled or dropped."""
        self.sent: Counter[int] = Counter()
        """How often each event was delivered."""
        self.met: Counter[str] = Counter()
        self.office.publish("t", *(b"%d" % number for number in range(EVENTS)))
        self.me = self._subscribe()

    def _subscribe(self) -> Consumer:
        return self.office.subscribe("me", "t", window=100, tries=1)

    # Steps

    def fail(self) -> None:
        for offset in self._take():
            failure = Failure(0, 0, "ValueError", "no", "", None)
            self.office.broker.refuse(self.me, offset, failure, self.office.now_s)

    def handle(self) -> None:
        for offset in self._take():
            self.me.subscription.settle(offset)
            self.done.add(offset)

    def _take(self) -> list[int]:
        offsets = [offset for offset, _ in self.office.take(self.me)]
        self.sent.update(offsets)
        return offsets

    def republish(self) -> None:
        self._count(self.office.desk.redrive.republish(numbers=self._some()).results)

    def republish_all(self) -> None:
        self._count(self.office.desk.redrive.republish().results)

    def edit(self) -> None:
        for number in self._some()[:1]:
            payload = b"edited %d" % self.random.randrange(100)
            self._count([self.office.desk.redrive.edit(number=number, payload=payload)])

    def drop(self) -> None:
        numbers = self._some()[:1]
        redrive = self.office.desk.redrive
        for one in redrive.drop(numbers=numbers, reason="old").results:
            if one.fresh:
                letter = self.office.desk.letters.show(number=one.number)
                assert letter.offset is not None
                self.done.add(letter.offset)

    def retain(self) -> None:
        """Retention takes all that was ever sent: letters have the only copies."""
        self.commit()
        cursor = self.me.subscription.cursor
        end = cursor.places.get(-1, cursor.start)
        if self.office.broker.log.topic("t").start_offset < min(end, EVENTS):
            self.met["gone"] += len(self.me.subscription.owed)
            lose(self.office, "t", min(end, EVENTS))
            self.met["retention"] += 1

    def commit(self) -> None:
        self.office.commit()

    def fail_commit(self) -> None:
        if self.office.broker.dirty:  # or the fault would wait for another write
            self.office.fail_commit()
            self.met["failed write"] += 1

    def crash(self) -> None:
        self.office.restart()
        self.me = self._subscribe()
        self.met["crash"] += 1

    def _some(self) -> list[int]:
        end = self.end()
        return self.random.sample(range(end), min(end, self.random.randrange(4)))

    def _count(self, results: list[Done]) -> None:
        self.met.update(one.text for one in results)

    # Looking

    def end(self) -> int:
        log = self.office.broker.log
        known = log.has_topic("$dead-letters")
        return log.topic("$dead-letters").end_offset if known else 0

    def check(self) -> None:
        desk = self.office.desk
        open_letters = Counter(
            one.offset for one in desk.letters.search(limit=1000).letters
        )
        one = self.me.subscription
        for offset in range(EVENTS):
            ahead = offset >= one.cursor.places.get(-1, one.cursor.start)
            places = int(offset in one.owed or ahead) + open_letters[offset]
            assert places <= 1, f"event {offset} is in {places} places"
            if places == 0:
                assert offset in self.done, f"event {offset} is lost"
        told = Counter(
            number
            for entry in desk.audit.search(limit=1000).entries
            for number in entry.numbers
        )
        still = {one.number for one in desk.letters.search(limit=1000).letters}
        closed = [number for number in range(self.end()) if number not in still]
        assert told == Counter(closed)

    def told(self) -> Counter[int | None]:
        """How often each event was to be sent: at first, and by the audit trail."""
        desk = self.office.desk
        return Counter(range(EVENTS)) + Counter(
            desk.letters.show(number=number).offset
            for entry in desk.audit.search(limit=1000).entries
            if entry.action != "dropped"
            for number in entry.numbers
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_every_event_is_somewhere_and_only_once(tmp_path: Path, seed: int) -> None:
    run(Desk(tmp_path, Random(seed)), failing=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_event_is_somewhere_after_failed_writes(
    tmp_path: Path, seed: int
) -> None:
    run(Desk(tmp_path, Random(seed)), failing=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_event_is_sent_as_often_as_the_audit_trail_says(
    tmp_path: Path, seed: int
) -> None:
    desk = Desk(tmp_path, Random(seed))
    acts = [desk.republish, desk.republish_all, desk.edit, desk.drop]
    try:
        for _ in range(STEPS):
            desk.random.choice([desk.fail, desk.fail, desk.handle])()
            desk.commit()
            for act in desk.random.choices(acts, k=2):
                act()
            desk.random.choice([desk.commit, desk.fail_commit])()
        desk.commit()
        desk.handle()
        desk.check()
        assert desk.sent == desk.told()
    finally:
        desk.office.broker.log.abandon()


def run(desk: Desk, *, failing: bool) -> Counter[str]:
    steps = [
        *(desk.fail, desk.fail, desk.handle, desk.republish, desk.republish_all),
        *(desk.edit, desk.edit, desk.drop, desk.retain, desk.commit, desk.crash),
    ]
    if failing:
        steps.append(desk.fail_commit)
    try:
        for _ in range(STEPS):
            step = desk.random.choice(steps)
            step()
            if step in (desk.commit, desk.crash):
                desk.check()
        desk.commit()
        desk.check()
    finally:
        desk.office.broker.log.abandon()
    return desk.met


def test_the_runs_meet_everything_that_they_are_about(tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        met += run(Desk(folder, Random(seed)), failing=True)

    for what in (
        *("republished", "republished before", "edited and republished"),
        *("dropped before", "retention", "gone", "failed write", "crash"),
    ):
        assert met[what], f"never met: {what}"
