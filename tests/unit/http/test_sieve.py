from __future__ import annotations

import pytest

from penstock.http.search import parsed
from penstock.http.sieve import Sieve, picked
from penstock.log import Batch, Columns, frame_of


@pytest.fixture
def batch() -> Batch:
    columns = Columns(
        [b'{"n":%d}' % n for n in range(6)],
        5,
        keys=[b"a", b"b", None, b"a", b"a", b"b"],
        headers=[{"type": "x"}, {}, {"type": "x"}, {"type": "y"}, {"type": "x"}, {}],
    )
    return Batch.of("t", frame_of(columns, 10, bytes(16)))


def test_nothing_wanted_keeps_nothing_back(batch: Batch) -> None:
    assert not Sieve()
    assert Sieve().indexes(batch) == list(range(6))


CASES = [
    (Sieve(key=b"a"), [0, 3, 4]),
    (Sieve(type="x"), [0, 2, 4]),
    (Sieve(search=parsed("n>=4")), [4, 5]),
    (Sieve(key=b"a", type="x"), [0, 4]),
    (Sieve(key=b"a", type="x", search=parsed("n>0")), [4]),
    (Sieve(key=b"zzz", search=parsed("n>0")), []),
]


@pytest.mark.parametrize(("sieve", "indexes"), CASES)
def test_all_that_is_wanted_has_to_be_there(
    batch: Batch, sieve: Sieve, indexes: list[int]
) -> None:
    assert sieve
    assert sieve.indexes(batch) == indexes


def test_a_view_is_looked_at_and_not_its_batch(batch: Batch) -> None:
    view = batch.since(13).before(15)

    assert Sieve(key=b"a").indexes(view) == [3, 4]
    assert Sieve(search=parsed("n<4")).indexes(view) == [3]


@pytest.mark.parametrize("sieve", [Sieve(key=b"a"), Sieve(type="x")])
def test_a_batch_without_the_column_has_nothing(sieve: Sieve) -> None:
    plain = Batch.of("t", frame_of(Columns([b"1"], 5), 0, bytes(16)))

    assert sieve.indexes(plain) == []


def test_neighbours_are_picked_together(batch: Batch) -> None:
    views = picked(batch, [0, 1, 3, 5])

    assert [view.offsets() for view in views] == [[10, 11], [13], [15]]
