"""Packet ids of one client; tests/properties/test_packet_ids.py: the general rules."""

from __future__ import annotations

import pytest

from penstock.delivery.handshake import Reply
from penstock.delivery.packet_ids import MAX_ID, InFlight, PacketIds


def packet_ids(*, noting: bool = True) -> PacketIds:
    return PacketIds(noting=noting)


def followed(one: PacketIds) -> PacketIds:
    """What a journal that has heard everything makes of it."""
    other = packet_ids()
    other.follow(one.said())
    return other


def assert_alike(one: PacketIds, other: PacketIds) -> None:
    assert list(one.out.items()) == list(other.out.items())
    assert list(one.released) == list(other.released)
    assert one.received == other.received


def test_ids_begin_with_1_and_go_up() -> None:
    one = packet_ids()

    assert one.send(9, [0, 1, 2], 1) == [1, 2, 3]
    assert one.send(9, [3], 2) == [4]
    assert one.out[4] == InFlight(9, 3, 2)
    assert len(one) == 4


@pytest.mark.slow
def test_ids_begin_again_behind_the_last_and_never_with_0() -> None:
    one = packet_ids()
    one.send(1, range(MAX_ID), 1)
    one.answered(Reply.ACK, range(1, MAX_ID + 1))

    assert one.send(1, [7], 1) == [1]


def test_a_run_that_would_pass_the_last_id_begins_with_1() -> None:
    one = packet_ids()
    one.send(1, range(MAX_ID - 1), 1)
    one.answered(Reply.ACK, range(1, MAX_ID))

    assert one.send(1, [7, 8], 1) == [1, 2]


def test_ids_in_use_are_passed_over() -> None:
    one = packet_ids()
    one.send(1, range(MAX_ID - 1), 2)
    one.answered(Reply.PUBREC, [2])
    one.refused(1)
    one.refused(4)

    assert one.send(1, [7, 8, 9], 1) == [MAX_ID, 1, 4]
    assert len(one) == MAX_ID


@pytest.mark.slow
def test_all_ids_may_be_in_use() -> None:
    one = packet_ids()

    assert set(one.send(1, range(MAX_ID), 1)) == set(range(1, MAX_ID + 1))
    with pytest.raises(AssertionError, match="window"):
        one.send(1, [MAX_ID], 1)


def test_puback_ends_a_delivery_of_qos_1() -> None:
    one = packet_ids()
    one.send(3, [10, 11], 1)

    assert one.answered(Reply.ACK, [2, 2, 9]) == [InFlight(3, 11, 1)]

    assert list(one.out) == [1]
    assert not one.released


def test_pubrec_releases_a_delivery_and_pubcomp_frees_its_id() -> None:
    one = packet_ids()
    one.send(3, [10], 2)

    assert one.answered(Reply.PUBREC, [1]) == [InFlight(3, 10, 2)]
    assert one.answered(Reply.PUBREC, [1]) == []
    assert (list(one.out), list(one.released), len(one)) == ([], [1], 1)

    assert one.completed([1, 1, 5]) == 1
    assert one.completed([1]) == 0
    assert len(one) == 0


@pytest.mark.parametrize(("qos", "answer"), [(1, Reply.PUBREC), (2, Reply.ACK)])
def test_an_answer_of_the_other_qos_counts_for_nothing(qos: int, answer: Reply) -> None:
    one = packet_ids()
    one.send(3, [10], qos)

    assert one.answered(answer, [1]) == []
    assert list(one.out) == [1]


def test_pubcomp_before_pubrec_counts_for_nothing() -> None:
    one = packet_ids()
    one.send(3, [10], 2)

    assert one.completed([1]) == 0
    assert list(one.out) == [1]


def test_a_delivery_that_was_refused_is_over() -> None:
    one = packet_ids()
    one.send(3, [10], 2)

    assert one.refused(1) == InFlight(3, 10, 2)
    assert one.refused(1) is None
    assert len(one) == 0


def test_deliveries_of_a_subscription_are_dropped_of_one_qos_or_all() -> None:
    one = packet_ids()
    one.send(3, [10], 2)
    one.send(3, [11], 1)
    one.send(4, [12], 1)

    assert one.drop(3, qos=1) == [11]
    assert one.drop(3) == [10]
    assert one.drop(3) == []
    assert list(one.out.values()) == [InFlight(4, 12, 1)]


def test_an_id_of_qos_2_that_is_abandoned_waits_for_its_pubcomp() -> None:
    one = packet_ids()
    one.send(3, [10], 1)
    one.send(3, [11], 2)
    one.send(4, [12], 1)
    assert one.of(3) == [1, 2]

    one.abandon(one.of(3))

    assert (list(one.out), list(one.released)) == ([3], [2])
    assert_alike(one, followed(one))


def test_a_released_id_is_not_dropped() -> None:
    one = packet_ids()
    one.send(3, [10], 2)
    one.answered(Reply.PUBREC, [1])

    assert one.drop(3) == []
    assert list(one.released) == [1]


def test_ids_of_the_client_are_known_from_publish_to_pubrel() -> None:
    one = packet_ids()
    one.receive([5, 6])

    assert one.complete([6, 7, 6]) == [6]
    assert one.complete([6]) == []
    assert one.received == {5}


def test_the_trail_says_everything_once() -> None:
    one = packet_ids()
    one.send(3, [10, 11, 12, 20], 1)
    one.send(4, [1, 2], 2)
    one.answered(Reply.ACK, [2])
    one.answered(Reply.PUBREC, [5, 6])
    one.completed([6])
    one.receive([8, 9])
    one.complete([9])
    one.refused(1)

    other = followed(one)

    assert_alike(one, other)
    assert one.said() == b""


def test_the_whole_trail_says_how_things_stand() -> None:
    one = packet_ids()
    one.send(3, [10, 11, 12], 2)
    one.answered(Reply.PUBREC, [2])
    one.receive([8])
    one.said()

    other = packet_ids()
    other.follow(one.whole_trail())

    assert_alike(one, other)


def test_neighbours_are_one_entry_of_the_trail() -> None:
    one, other = packet_ids(), packet_ids()
    one.send(3, range(1000), 1)
    other.send(3, [7], 1)

    assert len(one.said()) == len(other.said())


def test_nothing_is_noted_for_a_session_that_nobody_keeps() -> None:
    one = packet_ids(noting=False)
    one.send(3, [10], 2)
    one.answered(Reply.PUBREC, [1])
    one.receive([4])
    one.complete([4])

    assert one.said() == b""


def test_ids_go_on_behind_those_of_the_journal() -> None:
    one = packet_ids()
    one.send(3, [10, 11], 2)

    assert followed(one).send(3, [12], 2) == [3]
