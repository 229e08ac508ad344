from __future__ import annotations

import pytest

from penstock.client.deliveries import Delivery, Inbox, Offsets, deliveries
from penstock.errors import SubscriptionEnded
from penstock.model.event import Event
from penstock.wire.native import Events, Published

UUID = "01890000-0000-7000-8000-0000000000ff"
NEXT = "01890000-0000-7000-8000-000000000100"


def test_offsets_count_on_from_the_first() -> None:
    offsets = Offsets.of(Published(1, 7), 3, None)

    assert (list(offsets), offsets[-1], len(offsets)) == ([7, 8, 9], 9, 3)
    assert list(offsets[1:]) == [8, 9]
    assert repr(offsets) == "Offsets([7, 8, 9])"


def test_ids_are_those_given_or_count_on_from_the_first_generated() -> None:
    offsets = Offsets.of(Published(1, 0, [UUID]), 3, ["a", None, "c"])

    assert [offsets.id(n) for n in range(3)] == ["a", NEXT, "c"]


def test_an_id_that_was_not_told_is_none() -> None:
    assert Offsets.of(Published(1, [4, 2]), 2, None).id(1) is None


def test_joined_offsets_know_the_ids_of_each_part() -> None:
    joined = Offsets.joined(
        [
            Offsets.of(Published(1, 0, [UUID]), 2, None),
            Offsets.of(Published(2, [9]), 1, ["x"]),
        ]
    )

    assert list(joined) == [0, 1, 9]
    assert [joined.id(n) for n in range(3)] == [UUID, NEXT, "x"]
    with pytest.raises(IndexError):
        joined.id(3)


def test_a_batch_gives_its_events_one_by_one() -> None:
    batch = Events(
        1,
        [3, 4],
        [1, 2],
        [10, 20],
        ["a", "b"],
        [b"p", b"q"],
        priorities=[0, 9],
        keys=[None, b"k"],
        headers=[{}, {"h": "v"}],
        parents=[None, "a"],
        producers=["x", None],
    )

    plain, full = deliveries("t", batch)

    assert plain == Delivery(
        Event(topic="t", offset=3, id="a", timestamp_ms=10, payload=b"p", producer="x"),
        1,
    )
    assert (full.offset, full.payload, full.tries) == (4, b"q", 2)
    assert (full.event.priority, full.event.key) == (9, b"k")
    assert (full.event.headers, full.event.parent) == ({"h": "v"}, "a")


def test_what_a_batch_leaves_out_is_the_default() -> None:
    (one,) = deliveries("t", Events(1, [3], None, [10], ["a"], [b"p"]))

    assert one.tries == 1
    event = one.event
    assert (event.priority, event.key, event.headers) == (0, None, {})
    assert (event.parent, event.producer) == (None, None)


def test_an_inbox_is_read_to_its_end_before_it_has_ended() -> None:
    inbox = Inbox("t", 1)
    batch = Events(1, [3], None, [10], ["a"], [b"p"])
    inbox.batches.append(batch)
    inbox.ended = "forgotten"

    assert inbox.take() is batch
    with pytest.raises(SubscriptionEnded, match="^subscription to t ended: forgotten$"):
        inbox.take()
    inbox.ended = None
    assert inbox.take() is None


def test_what_waits_to_be_read_is_not_begun() -> None:
    inbox = Inbox("t", 1)
    inbox.batches += [Events(1, [offset], None, [0], ["a"], [b""]) for offset in (5, 6)]
    waiting = deliveries("t", Events(1, [3, 4], None, [0, 0], ["a", "b"], [b"", b""]))
    inbox.put_back.append(1)

    assert inbox.unbegun(list(waiting)) == [1, 3, 4, 5, 6]


def test_an_inbox_that_is_moved_forgets_what_it_had() -> None:
    told: list[int] = []
    inbox = Inbox("t", 1)
    inbox.batches.append(Events(1, [5], None, [0], ["a"], [b"x"]))
    inbox.acks, inbox.put_back = [3], [4]
    inbox.on_moved = lambda: told.append(inbox.channel)

    inbox.begin_anew(2)

    assert told == [2]
    assert inbox.take() is None
    assert (inbox.acks, inbox.unbegun([])) == ([], [])
