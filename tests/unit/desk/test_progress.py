from __future__ import annotations

import pytest

from penstock.desk.progress import progress
from penstock.errors import NotMoved, ReservedName, UnknownTopic
from tests.unit.desk.office import Office


def test_progress_makes_a_subscription_that_has_a_lag(office: Office) -> None:
    office.publish("t", b"1", b"2", b"3")

    one = progress(office.broker, "spark:q", "t", 1)
    office.commit()
    office.restart()

    assert (one.position(), one.lag()) == (1, 2)
    row = office.desk.subscription(subscriber="spark:q", topic="t")
    assert (row.position, row.lag, row.state) == (1, 2, "away")


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (2, 2), (3, 3), (99, 3)], ids=str
)
def test_progress_moves_it_both_ways(
    office: Office, offset: int, position: int
) -> None:
    office.publish("t", b"1", b"2", b"3")
    progress(office.broker, "spark:q", "t", 1)
    office.commit()

    progress(office.broker, "spark:q", "t", offset)
    office.commit()
    office.restart()

    assert office.broker.subscription("spark:q", "t").position() == position


def test_progress_that_is_none_writes_nothing(office: Office) -> None:
    office.publish("t", b"1")
    progress(office.broker, "spark:q", "t", 1)
    office.commit()

    progress(office.broker, "spark:q", "t", 1)

    assert not office.broker.dirty


def test_progress_outlives_a_failed_write(office: Office) -> None:
    office.publish("t", b"1", b"2")
    progress(office.broker, "spark:q", "t", 2)
    office.fail_commit()

    office.commit()
    office.restart()

    assert office.broker.subscription("spark:q", "t").position() == 2


def test_a_subscription_with_consumers_is_not_moved(office: Office) -> None:
    office.publish("t", b"1", b"2")
    office.subscribe("me", "t")

    with pytest.raises(NotMoved, match="1 consume it"):
        progress(office.broker, "me", "t", 2)

    assert office.broker.subscription("me", "t").position() == 0


def test_a_subscription_that_is_owed_something_is_not_moved(office: Office) -> None:
    office.publish("t", b"1", b"2")
    me = office.subscribe("me", "t")
    office.take(me)
    office.broker.detach(me)

    with pytest.raises(NotMoved, match="2 events that were delivered"):
        progress(office.broker, "me", "t", 2)


def test_names_and_topics_are_those_that_may_be(office: Office) -> None:
    office.publish("t", b"1")

    with pytest.raises(ReservedName):
        progress(office.broker, "$me", "t", 0)
    with pytest.raises(UnknownTopic):
        progress(office.broker, "me", "u", 0)
