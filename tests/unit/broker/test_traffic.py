from __future__ import annotations

import pytest

from penstock.broker import traffic as module
from penstock.broker.traffic import RECENT, SPARK, SYNC_BUCKETS, SYNCS, Traffic
from tests.unit.desk.office import Office


def pass_a_second(office: Office, seconds: float = 1.0) -> None:
    office.clock.advance(seconds)
    office.broker.tick(office.now_s)


def test_what_is_stored_counts_when_it_is_committed(office: Office) -> None:
    office.publish("t", b"a", b"b")
    office.publish("u", b"c")
    traffic = office.broker.traffic

    assert traffic.stored == 3
    assert traffic.stored_bytes > 3
    assert traffic.commits == 2


def test_what_failed_to_be_stored_does_not_count(office: Office) -> None:
    office.publish("t", b"a")
    before = office.broker.traffic.failed_commits
    office.fail_commit()  # nothing to write: nothing fails
    office.files.fail("write", "journal")

    with pytest.raises(Exception, match="journal"):
        office.publish("t", b"b")

    assert office.broker.traffic.stored == 1
    assert office.broker.traffic.failed_commits == before + 1


def test_topics_of_our_own_do_not_count(office: Office) -> None:
    office.raw_letter()

    assert office.broker.traffic.stored == 0
    assert office.broker.traffic.commits == 1


@pytest.mark.parametrize("priorities", [None, [0, 5, 0]])
def test_what_is_taken_counts_by_event(
    office: Office, priorities: list[int] | None
) -> None:
    office.publish("t", b"a", b"b", b"c", priorities=priorities)
    consumer = office.subscribe("me", "t", order="priority")

    assert len(office.take(consumer)) == 3

    traffic = office.broker.traffic
    assert traffic.sent == 3
    assert 0 < traffic.sent_bytes <= traffic.stored_bytes


def test_a_redelivery_is_another_one(office: Office) -> None:
    office.publish("t", b"a")
    consumer = office.subscribe("me", "t")
    office.take(consumer)
    consumer.subscription.put_back([0], consumer)

    office.take(consumer)

    assert office.broker.traffic.sent == 2


def test_rates_are_of_the_last_seconds(office: Office) -> None:
    office.publish("t", *[b"x"] * 40)
    pass_a_second(office)
    office.publish("t", *[b"x"] * 20)
    pass_a_second(office)

    traffic = office.broker.traffic

    assert traffic.rates().stored == 30
    assert traffic.rates().commits == 1
    assert traffic.stored_by_topic() == {"t": 30}
    assert traffic.spark("t") == [40, 20]
    for _ in range(RECENT):
        pass_a_second(office)
    assert traffic.rates().stored == 0
    assert traffic.stored_by_topic() == {}
    assert traffic.spark("t") == [40, 20, 0, 0, 0, 0, 0]


def test_a_long_second_counts_as_long_as_it_was(office: Office) -> None:
    office.publish("t", *[b"x"] * 40)

    pass_a_second(office, 4.0)

    assert office.broker.traffic.rates().stored == 10
    assert office.broker.traffic.spark("t") == [10]


def test_less_than_a_second_begins_no_other(office: Office) -> None:
    pass_a_second(office, 0.9)

    assert office.broker.traffic.ticks == 0


def test_a_clock_that_was_set_back_stops_nothing() -> None:
    traffic = Traffic(100.0)

    traffic.tick(50.0)
    traffic.tick(51.0)

    assert [slot.seconds for slot in traffic.slots] == [1.0, 1.0]


def test_subscriptions_have_their_own_rates(office: Office) -> None:
    office.publish("t", b"a", b"b")
    one, other = office.subscribe("one", "t"), office.subscribe("other", "t")
    office.take(one)
    pass_a_second(office)

    rates = office.broker.traffic.sent_by_subscription()

    assert rates == {one.subscription.number: 2}
    assert other.subscription.number not in rates


def test_the_busiest_are_kept_where_there_are_too_many(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_NAMES", 2)
    for name, count in (("a", 1), ("b", 3), ("c", 2)):
        office.publish(name, *[b"x"] * count)

    pass_a_second(office)

    assert office.broker.traffic.stored_by_topic() == {"b": 3, "c": 2}
    assert office.broker.traffic.rates().stored == 6


def test_no_more_than_the_last_seconds_are_kept(office: Office) -> None:
    for _ in range(100):
        pass_a_second(office)

    assert len(office.broker.traffic.spark("t")) == SPARK


def test_syncs_are_told_in_percentiles_and_buckets() -> None:
    traffic = Traffic(0.0)
    assert traffic.sync_ms(0.5) == [0.0]

    for milliseconds in range(1, 101):
        traffic.synced(milliseconds / 1000)
    traffic.synced(SYNC_BUCKETS[-1] + 1)

    assert traffic.sync_ms(0.5, 0.95) == [51, 96]
    assert sum(traffic.buckets) == 101
    assert traffic.buckets[-1] == 1
    assert traffic.buckets[SYNC_BUCKETS.index(0.001)] == 1
    assert traffic.sync_s == pytest.approx(5.05 + SYNC_BUCKETS[-1] + 1)


def test_the_latest_syncs_are_enough() -> None:
    traffic = Traffic(0.0)
    for _ in range(SYNCS):
        traffic.synced(1.0)

    for _ in range(SYNCS):
        traffic.synced(0.001)

    assert traffic.sync_ms(1.0) == [1.0]
