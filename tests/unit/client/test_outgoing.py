from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client import outgoing
from penstock.client.outgoing import Outgoing
from penstock.errors import InvalidBatch
from penstock.model.event import Event

EVENT = Event(topic="t", offset=1, id="i", timestamp_ms=2, payload=b"p", priority=3)


@pytest.mark.parametrize(
    ("items", "payloads"),
    [
        (b"one", [b"one"]),
        ("zwö", ["zwö".encode()]),
        ([b"a", "b"], [b"a", b"b"]),
        ((one for one in [b"a"]), [b"a"]),
        ([], []),
    ],
)
def test_payloads_are_bytes_or_text(items: object, payloads: list[bytes]) -> None:
    assert Outgoing.of(items).payloads == payloads  # type: ignore[arg-type]


def test_events_bring_their_columns() -> None:
    columns = Outgoing.of([EVENT, EVENT]).columns

    assert columns.given() == {"ids": ["i", "i"], "priorities": [3, 3]}


def test_events_and_payloads_do_not_mix() -> None:
    with pytest.raises(InvalidBatch, match="of one kind"):
        Outgoing.of([EVENT, b"x"])


@pytest.mark.parametrize(
    "column", ["ids", "keys", "priorities", "headers", "parents", "dedup_ids"]
)
def test_a_column_is_as_long_as_the_payloads(column: str) -> None:
    with pytest.raises(InvalidBatch, match=f"number of {column} is 0: must be 1"):
        Outgoing.of(b"x", **{column: []})


@given(
    sizes=st.lists(st.integers(0, 40), max_size=30),
    most=st.integers(1, 60),
    events=st.integers(1, 8),
)
def test_parts_are_bounded_and_together_the_whole(
    sizes: list[int], most: int, events: int
) -> None:
    payloads = [bytes([n % 256]) * size for n, size in enumerate(sizes)]
    ids: list[str | None] = [str(n) for n in range(len(sizes))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outgoing, "PART_BYTES", most)
        patch.setattr(outgoing, "PART_EVENTS", events)

        parts = list(Outgoing.of(payloads, ids=ids).parts())

    assert [one for part in parts for one in part.payloads] == payloads
    assert [one for part in parts for one in part.columns.ids or []] == ids
    for part in parts:
        assert 1 <= len(part.payloads) <= events
        assert len(part.payloads) == 1 or sum(map(len, part.payloads)) <= most


def test_without_events_there_is_one_empty_piece() -> None:
    none, some = Outgoing.of([]), Outgoing.of([b"a"])

    assert list(none.parts()) == []
    assert list(none.pieces()) == [none]
    assert list(some.pieces()) == [some]
