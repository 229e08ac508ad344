from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from penstock.client import plan, redrive
from penstock.client.plan import Plan, drive_blocking
from penstock.client.redrive import Progress, RedrivePace
from penstock.desk import error_log
from penstock.desk import letters as desk_letters
from penstock.desk.views.letters import Filter
from penstock.errors import InvalidOption
from tests.unit.desk.letter_scene import fail, letters
from tests.unit.desk.office import Office

EVENTS = 10


class Desk:
    """An office whose time passes while somebody sleeps or asks."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.now_s = 100.0
        self.ask_s = 0.0
        self.sent: list[tuple[float, int]] = []
        """When how many letters were sent again."""
        self.asked: list[str] = []

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds

    def ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        self.asked.append(verb)
        self.now_s += self.ask_s
        answer = self.office.desk.ask(verb, arguments)
        self.office.commit()
        if verb == "dead-letters.republish":
            results = answer.results  # type: ignore[attr-defined]
            self.sent.append((self.now_s, sum(one.fresh for one in results)))
        return answer

    def run(self, plan: Plan[redrive.GroupedRow]) -> redrive.GroupedRow:
        return drive_blocking(plan, self.ask, self.sleep)

    def republish(self, *which: redrive.Which, **more: object) -> Progress:
        plan = redrive.republish_all(*which, clock=self.clock, **more)  # type: ignore[arg-type]
        return drive_blocking(plan, self.ask, self.sleep)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Letters 0 to 9 of ``me``, then one of raw input."""
    office = Office(tmp_path)
    office.publish("t", *(str(number).encode() for number in range(EVENTS)))
    me = office.subscribe("me", "t", tries=1, window=100)
    fail(office, me, "ValueError", "no 17")
    office.raw_letter()
    yield Desk(office)
    office.broker.log.abandon()


def test_all_letters_are_listed_over_many_pages(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MAX_ROWS", 3)

    everything = drive_blocking(redrive.list_all(), desk.ask, desk.sleep)
    some = drive_blocking(
        redrive.list_all(Filter(subscriber="me"), start=2, count=4),
        desk.ask,
        desk.sleep,
    )

    assert [one.number for one in everything] == list(range(11))
    assert [one.number for one in some] == [2, 3, 4, 5]
    assert len(desk.asked) == 4 + 2


def test_groups_of_many_pages_are_merged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_letters, "MAX_GROUPED", 4)

    mine, raw = drive_blocking(redrive.groups(), desk.ask, desk.sleep)

    assert (mine.subscriber, mine.count) == ("me", EVENTS)
    assert (mine.first, mine.example, mine.kind) == (0, 9, "ValueError")
    assert (raw.subscriber, raw.count, raw.example) == (None, 1, 10)
    assert len(desk.asked) == 3


def test_error_groups_of_many_pages_are_merged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_log, "MAX_GROUPED", 4)

    (group,) = drive_blocking(redrive.error_groups(), desk.ask, desk.sleep)

    assert (group.subscriber, group.kind, group.count) == ("me", "ValueError", EVENTS)


def test_everything_is_sent_again_a_page_at_a_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive, "MAX_ROWS", 4)
    seen: list[tuple[int, int | None]] = []

    progress = desk.republish(
        on_progress=lambda now: seen.append((now.done, now.total))
    )

    assert (progress.done, progress.failed, progress.total) == (EVENTS, 0, EVENTS)
    assert seen[0] == (4, EVENTS)
    assert seen[-1] == (EVENTS, EVENTS)
    assert letters(desk.office) == [10]
    me = desk.office.broker.subscription("me", "t").consumers[0]
    assert len(desk.office.take(me)) == EVENTS


def test_carried_out_again_it_sends_nothing_twice(desk: Desk) -> None:
    desk.republish()

    again = desk.republish()
    numbers = desk.republish([0, 1, 1])

    assert (again.done, again.total) == (0, 0)
    assert (numbers.done, numbers.before, numbers.total) == (0, 2, 2)


def test_an_interrupted_plan_goes_on_where_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive, "MAX_ROWS", 4)

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.republish(on_progress=interrupt)
    rest = desk.republish()

    assert (rest.done, rest.total) == (EVENTS - 4, EVENTS - 4)


def test_letters_that_come_meanwhile_are_left_for_the_next_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive, "MAX_ROWS", 1)
    me = desk.office.broker.subscription("me", "t").consumers[0]

    progress = desk.republish(
        on_progress=lambda _: fail(desk.office, me, "ValueError", "still no 17")
    )

    assert progress.done == EVENTS
    assert letters(desk.office) == list(range(10, 11 + EVENTS))


def test_what_cannot_be_sent_is_counted_and_told(desk: Desk) -> None:
    desk.office.desk.forget(subscriber="me", topic="t")
    texts: list[str] = []

    progress = desk.republish(
        on_progress=lambda now: texts.extend(one.text for one in now.results)
    )

    assert (progress.done, progress.failed, progress.seen) == (0, EVENTS, EVENTS)
    assert set(texts) == {"me has no subscription to t any more"}


def test_a_dry_run_tells_and_does_nothing(desk: Desk) -> None:
    progress = desk.republish(dry_run=True)

    assert progress.done == EVENTS
    assert progress.results[0].text == "would be republished"
    assert len(letters(desk.office)) == EVENTS + 1


def test_letters_that_are_like_one_are_found(desk: Desk) -> None:
    like = drive_blocking(redrive.like(3), desk.ask, desk.sleep)

    assert (like.subscriber, like.topic, like.error) == ("me", "t", "ValueError")
    assert desk.republish(like).done == EVENTS


def test_letters_are_dropped_raw_input_too(desk: Desk) -> None:
    plan = redrive.drop_all(Filter(), reason="old", by="anna")
    progress = drive_blocking(plan, desk.ask, desk.sleep)

    assert (progress.done, progress.total) == (EVENTS + 1, EVENTS + 1)
    assert letters(desk.office) == []
    entries = desk.office.desk.audit.search().entries
    assert {(one.by, one.reason) for one in entries} == {("anna", "old")}


# The rate


@pytest.mark.parametrize(
    ("rate", "sizes", "seconds"),
    [
        (None, [10], 0.0),
        (2.0, [1] * 10, 4.5),
        (0.5, [1] * 10, 18.0),
        (30.0, [3, 3, 3, 1], 0.3),
        (1e9, [10], 0.0),
    ],
)
def test_letters_go_at_the_rate(
    desk: Desk, rate: float | None, sizes: list[int], seconds: float
) -> None:
    desk.republish(rate=rate)

    assert [count for _, count in desk.sent] == sizes
    assert desk.sent[-1][0] - desk.sent[0][0] == pytest.approx(seconds, abs=1e-6)


def test_time_that_asking_takes_counts(desk: Desk) -> None:
    desk.ask_s = 0.3

    desk.republish(list(range(EVENTS)), rate=2.0)

    took_s = desk.sent[-1][0] - desk.sent[0][0]
    assert took_s == pytest.approx(4.5, abs=0.3)


def test_a_slow_desk_is_not_made_up_for_in_a_burst(desk: Desk) -> None:
    desk.ask_s = 5.0

    desk.republish(list(range(EVENTS)), rate=20.0)

    gaps = [b[0] - a[0] for a, b in zip(desk.sent, desk.sent[1:], strict=False)]
    assert all(gap >= 5.0 for gap in gaps)


def test_what_is_found_done_before_costs_no_time(desk: Desk) -> None:
    desk.republish()
    desk.sent.clear()

    desk.republish(list(range(EVENTS)), rate=1.0)

    assert desk.sent[-1][0] == desk.sent[0][0]


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_a_rate_is_above_zero(rate: float) -> None:
    with pytest.raises(InvalidOption, match="rate"):
        RedrivePace(rate)
