from __future__ import annotations

import msgspec
import pytest

from penstock.broker.options import BrokerOptions
from penstock.broker.sinks import ENDED_MS, Epoch, Sinks
from penstock.broker.staging import StagedPiece
from penstock.errors import LimitReached
from penstock.log import Record


def sinks(max_sinks: int = 10) -> Sinks:
    return Sinks(BrokerOptions(max_sinks=max_sinks))


def epoch(query: str, number: int) -> Epoch:
    return Epoch(query, number, 5, 1)


def committed(one: Sinks, *epochs: Epoch) -> list[bytes]:
    for each in epochs:
        one.commit(each)
    records = [data for data, _ in one.collect()]
    one.confirmed()
    return records


def replayed(records: list[bytes], snapshot: bytes | None = None) -> Sinks:
    found = sinks()
    if snapshot is not None:
        found.restore(snapshot)
    for data in records:
        found.replay(Record(kind=263, data=data, group=1, time_ms=0))
    return found


def test_an_epoch_is_noted_with_a_sync_in_one_record() -> None:
    one = sinks()
    one.commit(epoch("q", 1))
    one.commit(epoch("r", 4))

    assert one.urgent
    assert [sync for _, sync in one.collect()] == [True]
    assert one.collect() == []


def test_nothing_is_urgent_that_is_in_a_group() -> None:
    one = sinks()
    committed(one, epoch("q", 1))

    assert not one.urgent


def test_epochs_are_known_after_a_restart() -> None:
    one = sinks()
    before = committed(one, epoch("q", 1), epoch("r", 1))
    snapshot = one.snapshot()
    since = committed(one, epoch("q", 2))

    assert list(replayed([*before, *since])) == list(one)
    assert list(replayed(since, snapshot)) == list(one)
    assert one.last("q") == epoch("q", 2)


def test_epochs_up_to_the_last_count_as_committed() -> None:
    one = sinks()
    committed(one, epoch("q", 5))

    assert [one.has("q", number) for number in (4, 5, 6)] == [True, True, False]
    assert not one.has("r", 0)


def test_an_epoch_is_stored_when_its_group_is() -> None:
    one = sinks()
    one.commit(epoch("q", 1))

    assert (one.has("q", 1), one.stored("q", 1)) == (True, False)
    one.collect()
    assert not one.stored("q", 1)
    one.confirmed()
    assert one.stored("q", 1)


def test_a_failed_commit_takes_back_what_it_noted() -> None:
    one = sinks()
    committed(one, epoch("q", 1))
    one.commit(epoch("q", 2))
    one.commit(epoch("r", 1))
    one.collect()
    one.commit(epoch("q", 3))

    one.taken_back()

    assert list(one) == [epoch("q", 1)]
    assert not one.urgent


def test_what_is_staged_stays_until_the_commit_has_ended() -> None:
    one = sinks()
    for number in (1, 2):
        one.staging.put("q", number, (0, 0), 0, StagedPiece(None), 0.0)
    one.commit(epoch("q", 1))
    one.collect()

    one.taken_back()
    assert list(one.staging.of_query("q")) == [1, 2]

    committed(one, epoch("q", 1))
    assert list(one.staging.of_query("q")) == [2]


def test_queries_that_were_quiet_for_longest_are_forgotten() -> None:
    one = sinks(max_sinks=2)
    committed(one, epoch("a", 1), epoch("b", 1))
    committed(one, epoch("a", 2))

    committed(one, epoch("c", 1))

    assert [known.query for known in one] == ["a", "c"]


def ended(query: str, at_ms: int = 5) -> Epoch:
    return Epoch(query, 0, at_ms, 1, last=True)


@pytest.mark.slow
def test_writes_that_are_alone_push_no_query_out() -> None:
    """A query that runs once a week, and a hundred thousand batches in between."""
    one = sinks(max_sinks=10)
    committed(one, epoch("weekly", 7))

    for number in range(100_000):
        committed(one, ended(f"write {number}"))

    assert one.has("weekly", 7)
    assert one.has("write 99990", 0)
    assert not one.has("write 99989", 0)
    assert [known.query for known in one] == ["weekly"]


def test_a_write_that_is_alone_is_known_after_a_restart() -> None:
    one = sinks()
    records = committed(one, ended("w"), epoch("q", 1))

    for again in (replayed(records), replayed([], one.snapshot())):
        assert again.has("w", 0)
        assert list(again) == [epoch("q", 1)]


def test_a_write_that_is_alone_is_forgotten_when_nobody_asks_any_more() -> None:
    one = sinks()
    committed(one, epoch("q", 1), ended("early", 1), ended("late", 2))

    committed(one, ended("next day", 2 + ENDED_MS))

    assert not one.has("early", 0)
    assert one.has("late", 0)
    assert one.has("q", 1)


def test_a_write_that_failed_was_not_the_last() -> None:
    one = sinks()
    committed(one, epoch("q", 1))
    one.commit(Epoch("q", 2, 5, 1, last=True))

    one.taken_back()

    assert list(one) == [epoch("q", 1)]


def test_epochs_of_before_are_read() -> None:
    """As they were written when none could be the last."""
    old = msgspec.msgpack.encode([("q", 3, 5, 1)])

    assert list(replayed([old])) == [epoch("q", 3)]


def test_made_up_queries_push_out_those_of_their_own_user() -> None:
    one = sinks(max_sinks=4)
    committed(one, owned("mine", "anna"), owned("w", "anna", last=True))

    for number in range(20):
        committed(one, owned(f"made up {number}", "bert"))
        committed(one, owned(f"ended {number}", "bert", last=True))

    assert [known.query for known in one] == [
        "mine",
        *(f"made up {number}" for number in (17, 18, 19)),
    ]
    assert one.has("w", 0)
    assert not one.has("ended 16", 0)


def test_whose_a_query_is_survives_a_restart() -> None:
    one = sinks()
    records = committed(one, owned("q", "anna"), owned("w", "bert", last=True))

    for again in (replayed(records), replayed([], one.snapshot())):
        assert [again.owner(query) for query in "qwx"] == ["anna", "bert", ""]


def test_a_commit_that_fails_makes_nobody_an_owner() -> None:
    one = sinks()
    one.commit(owned("q", "anna"))

    one.taken_back()

    assert one.owner("q") == ""


def test_queries_of_before_are_nobodys() -> None:
    old = msgspec.msgpack.encode([("q", 3, 5, 1, False, "place")])

    assert replayed([old]).owner("q") == ""


def test_notes_of_all_queries_have_a_limit() -> None:
    one = Sinks(BrokerOptions(max_sink_bytes=400))
    committed(one, noted("a", "", "x" * 300), noted("b", "anna", "é" * 20))

    with pytest.raises(LimitReached, match="400 bytes of notes, the limit of max_sink"):
        one.check_note("c", "", "x" * 21)
    one.check_note("c", "", "x" * 20)
    one.check_note("a", "", "y" * 300)  # no more than there is
    committed(one, noted("a", "", ""))
    one.check_note("c", "", "x" * 320)


def test_one_user_leaves_room_for_the_notes_of_others() -> None:
    one = Sinks(BrokerOptions(max_sink_bytes=400))
    committed(one, noted("a", "anna", "x" * 60), noted("b", "anna", "x" * 40))

    with pytest.raises(LimitReached, match="bytes of notes for anna"):
        one.check_note("c", "anna", "x")
    one.check_note("c", "bert", "x" * 100)


def owned(query: str, owner: str, *, last: bool = False) -> Epoch:
    return Epoch(query, 0, 5, 1, last=last, owner=owner)


def noted(query: str, owner: str, note: str) -> Epoch:
    return Epoch(query, 0, 5, 1, note=note, owner=owner)
