from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.gateway import native_events
from penstock.gateway.native_events import LARGE, messages
from penstock.log import Batch, Columns, frame_of
from penstock.model.ids import id_base, low_id
from penstock.wire.native import Events, FrameSplitter, decode_server

ID_BASE = id_base(1_700_000_000_000, low_id(b"\xff" * 10))


def page(count: int, base: int = 100, **columns: Any) -> Page:
    payloads = [b"%d" % (base + n) for n in range(count)]
    frame = frame_of(Columns(payloads, 5, **columns), base, ID_BASE)
    return Page(Batch.of("t", frame))


def decoded(portions: list[Portion]) -> list[Events]:
    splitter = FrameSplitter(1 << 30)
    found = [
        decode_server(body)
        for data in messages(3, portions)
        for body in splitter.feed(data)
    ]
    assert all(isinstance(one, Events) and one.channel == 3 for one in found)
    return found  # type: ignore[return-value]


def rows(found: list[Events]) -> list[tuple[object, ...]]:
    """All that is told of each event."""
    return [
        (
            message.offsets[n],
            1 if message.tries is None else message.tries[n],
            message.timestamps[n],
            message.ids[n],
            message.payloads[n],
            0 if message.priorities is None else message.priorities[n],
            None if message.keys is None else message.keys[n],
            {} if message.headers is None else message.headers[n],
            None if message.parents is None else message.parents[n],
            None if message.producers is None else message.producers[n],
        )
        for message in found
        for n in range(len(message.offsets))
    ]


def expected(portions: list[Portion]) -> list[tuple[object, ...]]:
    """The same, from the events themselves."""
    told: list[tuple[object, ...]] = []
    for portion in portions:
        for event in list(portion.page.batch.events())[portion.lo : portion.hi]:
            told.append(
                (
                    event.offset,
                    portion.tries,
                    event.timestamp_ms,
                    event.id,
                    event.payload,
                    event.priority,
                    event.key,
                    event.headers,
                    event.parent,
                    event.producer,
                )
            )
    return told


def test_a_whole_page_is_packed_once_for_everybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = page(LARGE)
    first = messages(3, [Portion(whole, 0, LARGE, 1)])
    monkeypatch.setattr(native_events, "_columns", None)  # not called any more

    assert messages(3, [Portion(whole, 0, LARGE, 1)]) == first
    assert messages(4, [Portion(whole, 0, LARGE, 1)]) != first


def test_small_portions_share_a_message_and_large_ones_do_not() -> None:
    one, two = page(LARGE + 5), page(3, base=500)
    portions = [
        Portion(two, 0, 1, 1),
        Portion(two, 1, 3, 2),
        Portion(one, 0, LARGE, 1),
        Portion(two, 2, 3, 3),
    ]

    found = decoded(portions)

    assert [len(one.offsets) for one in found] == [3, LARGE, 1]
    assert [one.tries for one in found] == [[1, 2, 2], None, [3]]
    assert rows(found) == expected(portions)


def test_columns_that_are_at_their_default_are_left_out() -> None:
    (message,) = decoded([Portion(page(2), 0, 2, 1)])

    assert (message.priorities, message.keys, message.headers) == (None, None, None)
    assert (message.parents, message.producers, message.tries) == (None, None, None)


columns = st.fixed_dictionaries(
    {},
    optional={
        "ids": st.lists(st.none() | st.text(), min_size=80, max_size=80),
        "keys": st.lists(st.none() | st.binary(), min_size=80, max_size=80),
        "priorities": st.lists(st.integers(0, 255), min_size=80, max_size=80),
        "headers": st.lists(
            st.dictionaries(st.text(), st.text(), max_size=2), min_size=80, max_size=80
        ),
        "parents": st.lists(st.none() | st.text(), min_size=80, max_size=80),
        "producer": st.text(),
    },
)


@pytest.mark.slow
@given(data=st.data(), first=columns, second=columns)
def test_every_event_is_told_whole_and_in_order(
    data: st.DataObject, first: dict[str, Any], second: dict[str, Any]
) -> None:
    pages = [page(80, **first), page(80, base=1000, **second)]
    places = st.tuples(
        st.sampled_from(pages),
        st.integers(0, 79),
        st.integers(1, 80),
        st.integers(1, 3),
    ).filter(lambda one: one[1] < one[2])
    portions = [
        Portion(*one) for one in data.draw(st.lists(places, min_size=1, max_size=5))
    ]

    assert rows(decoded(portions)) == expected(portions)


def test_generated_ids_of_a_page_with_gaps_follow_its_offsets() -> None:
    kept = page(9).batch.take([0, 3, 8])
    gaps = Page(Batch.of("t", frame_of(kept, 100, ID_BASE)))
    portions = [Portion(gaps, 0, 3, 1)]

    assert rows(decoded(portions)) == expected(portions)


def test_generated_ids_that_say_their_own_time_are_told() -> None:
    columns = Columns([b"a", b"b"], [5, 6])
    columns.ids_by_time = True
    gathered = Page(Batch.of("t", frame_of(columns, 100, ID_BASE)))
    portions = [Portion(gathered, 0, 2, 1)]

    assert rows(decoded(portions)) == expected(portions)
