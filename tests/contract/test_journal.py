"""What a log relies on, of every backend of its journal."""

from __future__ import annotations

from random import Random

import pytest

from penstock.errors import Fenced, InDoubt, WriteFailed
from penstock.log import Journal, JournalEntry
from tests.contract.journals import BACKENDS, Backend


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]()


@pytest.fixture
def doubting(backend: Backend) -> Backend:
    if not backend.doubts:
        pytest.skip("what this backend does is never in doubt")
    return backend


def opened(backend: Backend, position: int = 0) -> tuple[Journal, list[int]]:
    """A writer that goes on behind what is there, and the numbers of its groups."""
    journal = backend.writer()
    replay = journal.read(position)
    found = [group.number for group in replay.groups()]
    assert not replay.damages
    journal.begin()
    assert journal.position == replay.end
    return journal, found


def append(journal: Journal, *numbers: int, sync: bool = True) -> None:
    for number in numbers:
        entries = [JournalEntry(256, 0, b"%d" % number, b"!" * (number % 7))]
        journal.append(number, entries, 1000 + number, sync=sync)


def test_groups_come_back_whole_and_in_their_order(backend: Backend) -> None:
    journal, found = opened(backend)
    assert found == [] and journal.first is None
    journal.append(
        1, [JournalEntry(1, 5, b"a", b"bc"), JournalEntry(300, 0, b"")], 77, sync=True
    )
    append(journal, 2, 3)
    journal.close()
    journal.abandon()

    groups = list(backend.writer().read(0).groups())

    assert [group.number for group in groups] == [1, 2, 3]
    assert [group.time_ms for group in groups] == [77, 1002, 1003]
    first = list(groups[0].entries())
    assert [(one.kind, one.topic) for one in first] == [(1, 5), (300, 0)]
    assert [bytes(one.data) + bytes(one.more) for one in first] == [b"abc", b""]


def test_a_group_is_as_it_was_appended_whatever_becomes_of_its_buffers(
    backend: Backend,
) -> None:
    journal, _ = opened(backend)
    data, more = bytearray(b"before"), bytearray(b" and behind")
    journal.append(1, [JournalEntry(256, 0, data, memoryview(more))], 1, sync=True)

    data[:] = b"xxxxxx"
    more[:] = b"yyyyyyyyyyy"

    (group,) = backend.writer().read(0).groups()
    (entry,) = group.entries()
    assert bytes(entry.data) + bytes(entry.more) == b"before and behind"


def test_it_goes_on_from_the_position_that_a_checkpoint_tells(backend: Backend) -> None:
    journal, _ = opened(backend)
    append(journal, 1, 2)
    position = journal.position
    append(journal, 3, 4)
    journal.abandon()

    journal, found = opened(backend, position)
    append(journal, 5)
    journal.abandon()

    assert found == [3, 4]
    assert opened(backend, position)[1] == [3, 4, 5]


def test_the_sizes_of_groups_are_how_far_the_position_moves(backend: Backend) -> None:
    journal, _ = opened(backend)
    append(journal, 1, 2, 3)

    groups = backend.writer().read(0).groups()

    assert sum(group.size for group in groups) == journal.position


@pytest.mark.parametrize("seed", range(20))
def test_what_was_synced_outlives_a_power_failure_and_the_rest_has_no_gap(
    backend: Backend, seed: int
) -> None:
    random, number, position = Random(seed), 0, 0
    certain: list[int] = []
    for _ in range(6):
        journal, found = opened(backend)
        assert found[: len(certain)] == certain
        assert found == list(range(1, len(found) + 1)), "a gap, or a group twice"
        certain, number = found, len(found)
        for _ in range(random.randrange(6)):
            number += 1
            sync = random.random() < 0.5
            append(journal, number, sync=sync)
            if sync:
                certain = list(range(1, number + 1))
        if random.random() < 0.3:
            journal.sync()
            certain = list(range(1, number + 1))
        assert journal.position >= position
        journal.abandon()
        backend.lose_power()
        position = 0


def test_a_securing_makes_durable_what_was_appended_before_it(backend: Backend) -> None:
    journal, _ = opened(backend)
    append(journal, 1, 2, sync=False)

    securing = journal.secure()
    securing.run()
    journal.secured(securing)
    journal.abandon()
    backend.lose_power()

    assert opened(backend)[1][:2] == [1, 2]


def test_a_failed_append_leaves_nothing_and_the_next_one_follows(
    backend: Backend,
) -> None:
    journal, _ = opened(backend)
    append(journal, 1)
    before = journal.position

    backend.fail_next()
    with pytest.raises(WriteFailed):
        append(journal, 2)

    assert journal.position == before
    append(journal, 4)
    journal.abandon()
    assert opened(backend)[1] == [1, 4]


def test_what_is_retired_is_not_missed(backend: Backend) -> None:
    journal, _ = opened(backend)
    append(journal, *range(1, 60))
    position = journal.position
    append(journal, *range(60, 120))

    journal.retire(position)
    append(journal, 120)
    journal.abandon()

    assert opened(backend, position)[1] == list(range(60, 121))


def test_groups_that_are_missing_are_told_of(backend: Backend) -> None:
    journal, _ = opened(backend)
    append(journal, *range(1, 200))
    end = journal.position
    journal.retire(end)
    journal.abandon()

    replay = backend.writer().read(0)
    found = [group.number for group in replay.groups()]

    assert replay.damages, "groups are gone, and nobody says so"
    assert found == sorted(found)
    assert replay.end == end


def test_syncs_are_counted(backend: Backend) -> None:
    journal, _ = opened(backend)

    append(journal, 1, 2)
    append(journal, 3, sync=False)

    assert journal.syncs == 2


# What is not known


@pytest.mark.parametrize("stored", [True, False])
def test_what_was_in_doubt_is_found_out(doubting: Backend, stored: bool) -> None:
    journal, _ = opened(doubting)
    append(journal, 1)

    doubting.doubt_next(stored=stored, looks=3)
    with pytest.raises(InDoubt):
        append(journal, 2)
    for _ in range(2):
        with pytest.raises(InDoubt):
            journal.settle()
    if stored:
        journal.settle()
    else:
        with pytest.raises(WriteFailed):
            journal.settle()

    append(journal, 3)
    journal.abandon()
    assert opened(doubting)[1] == ([1, 2, 3] if stored else [1, 3])


def test_a_writer_whose_place_is_taken_stores_nothing_more(doubting: Backend) -> None:
    journal, _ = opened(doubting)
    append(journal, 1)

    successor, found = opened(doubting)
    with pytest.raises(Fenced):
        append(journal, 2)
    append(successor, 3)

    assert found == [1]
    assert opened(doubting)[1] == [1, 3]


@pytest.mark.parametrize("stored", [True, False])
def test_who_is_in_doubt_may_find_its_place_taken(
    doubting: Backend, stored: bool
) -> None:
    journal, _ = opened(doubting)
    doubting.doubt_next(stored=stored)
    with pytest.raises(InDoubt):
        append(journal, 1)

    _, found = opened(doubting)

    if stored:
        journal.settle()
    else:
        with pytest.raises(Fenced):
            journal.settle()
    with pytest.raises(Fenced):
        append(journal, 2)
    assert found == ([1] if stored else []), "whoever asks"
