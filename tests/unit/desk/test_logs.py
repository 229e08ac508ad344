from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.desk import logs as desk_logs
from penstock.desk.views.logs import SubscriberLog
from penstock.errors import UnknownTopic
from tests.unit.desk.office import Office


def logs(office: Office, **arguments: object) -> dict[str, SubscriberLog]:
    page = office.desk.logs.logs(topic="t", **arguments)  # type: ignore[arg-type]
    return {one.subscriber: one for one in page.subscribers}


def shown(log: SubscriberLog) -> list[tuple[int, bytes]]:
    return [(event.priority, event.msg) for event in log.events]


@pytest.mark.parametrize("order", ["log", "priority"])
def test_unsettled_events_are_shown_the_highest_priority_first(
    office: Office, order: str
) -> None:
    office.publish("t", b"a", b"b", b"c", b"d", priorities=[0, 2, 2, 9])
    me = office.subscribe("me", "t", order=order, window=2)
    first, second = office.take(me)
    me.subscription.settle(first[0])

    log = logs(office)["me"]

    everything = {0: (0, b"a"), 1: (2, b"b"), 2: (2, b"c"), 3: (9, b"d")}
    del everything[first[0]]
    ranked = sorted(everything.items(), key=lambda one: (-one[1][0], one[0]))
    assert shown(log) == [event for _, event in ranked]
    assert (log.unsettled, log.cut) == (3, False)
    assert log.events[0].timestamp == int(office.now_s * 1000)


def test_a_topic_without_priorities_is_shown_in_its_order(office: Office) -> None:
    office.publish("t", b"a", b"b", b"c")
    office.take(office.subscribe("me", "t", window=1))

    assert shown(logs(office)["me"]) == [(0, b"a"), (0, b"b"), (0, b"c")]


def test_a_long_log_is_cut_and_says_so(office: Office) -> None:
    office.publish("t", *[b"%d" % n for n in range(9)])
    office.subscribe("me", "t")

    log = logs(office, limit=4)["me"]

    assert [event.msg for event in log.events] == [b"0", b"1", b"2", b"3"]
    assert (log.cut, log.unsettled) == (True, 9)


def test_large_events_are_cut_by_their_bytes(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_logs, "MAX_BYTES", 1000)
    office.publish("t", *[b"x" * 600] * 5)
    for name in ("a", "b"):
        office.subscribe(name, "t")

    page = office.desk.logs.logs(topic="t")
    behind = office.desk.logs.logs(topic="t", after="a")

    (a,) = page.subscribers
    assert (len(a.events), a.cut, page.more) == (2, True, True)
    assert ([one.subscriber for one in behind.subscribers], behind.more) == (
        ["b"],
        False,
    )


def test_many_subscribers_come_in_several_answers(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_logs, "MAX_ROWS", 10)
    office.publish("t", b"a", b"b", b"c", b"d")
    for number in range(7):
        office.take(office.subscribe(f"me{number}", "t", window=1))

    first = office.desk.logs.logs(topic="t")
    then = office.desk.logs.logs(topic="t", after=first.subscribers[-1].subscriber)

    assert [one.subscriber for one in first.subscribers] == ["me0", "me1"]
    assert [one.subscriber for one in then.subscribers] == ["me2", "me3"]
    assert first.more and then.more


def test_settled_events_and_those_trimmed_away_are_not_shown(office: Office) -> None:
    office.publish("t", b"a", b"b", b"c")
    me = office.subscribe("me", "t", window=1)
    office.take(me)
    me.subscription.settle(0)
    office.broker.log.roll("t")
    office.broker.log.trim("t", 2)
    office.broker.pages.forget("t")

    assert shown(logs(office)["me"]) == [(0, b"c")]


def test_a_topic_has_to_exist(office: Office) -> None:
    with pytest.raises(UnknownTopic):
        logs(office)


def test_nobody_has_no_log(office: Office) -> None:
    office.publish("t", b"a")

    assert logs(office) == {}


@pytest.mark.slow
@given(
    priorities=st.lists(st.integers(0, 3), min_size=1, max_size=30),
    order=st.sampled_from(["log", "priority"]),
    settled=st.sets(st.integers(0, 29)),
    window=st.integers(1, 30),
    limit=st.integers(1, 30),
)
def test_the_view_is_what_is_not_settled_by_priority(
    tmp_path_factory: pytest.TempPathFactory,
    priorities: list[int],
    order: str,
    settled: set[int],
    window: int,
    limit: int,
) -> None:
    office = Office(tmp_path_factory.mktemp("logs"))
    payloads = [b"%d" % n for n in range(len(priorities))]
    office.publish("t", *payloads, priorities=priorities)
    me = office.subscribe("me", "t", order=order, window=window)
    taken = {offset for offset, _ in office.take(me)}
    for offset in taken & settled:
        me.subscription.settle(offset)

    log = logs(office, limit=limit)["me"]

    left = set(range(len(priorities))) - (taken & settled)
    expected = sorted(left, key=lambda offset: (-priorities[offset], offset))
    assert [int(event.msg) for event in log.events] == expected[:limit]
    assert log.unsettled == len(left)
    office.broker.log.abandon()
