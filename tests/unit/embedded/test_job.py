from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.delivery.owed import Portion
from penstock.embedded.event import Event
from penstock.embedded.job import events_of, jobs_of
from penstock.embedded.payload import Codec
from penstock.errors import UnfitPayload
from penstock.log import Columns, Log
from tests.unit.embedded.scene import job


def portions(data: Path, columns: Columns, *cuts: tuple[int, int]) -> list[Portion]:
    with Broker(partial(Log.open, data)) as broker:
        broker.publish("t", columns)
        broker.log.commit()
        page = broker.pages.at("t", 0)
        assert page is not None
        return [Portion(page, lo, hi, tries) for tries, (lo, hi) in enumerate(cuts, 1)]


def test_parts_of_a_page_become_events(tmp_path: Path) -> None:
    columns = Columns(
        [b"0", b"1", b"2", b"3"],
        5,
        ids=["a", "b", "c", "d"],
        keys=[b"k", None, b"", b"k"],
        priorities=[0, 1, 2, 3],
        headers=[{}, {"h": "1"}, {}, {}],
        parents=[None, "p", None, None],
        producer="me",
    )

    jobs = jobs_of("t", portions(tmp_path, columns, (1, 2), (2, 4)), by_key=True)

    assert [(one.offset, one.tries, one.lane) for one in jobs] == [
        (1, 1, 1),  # without a key it is in nobody's way
        (2, 2, b""),
        (3, 2, b"k"),
    ]
    assert jobs[0].event == Event(
        topic="t",
        offset=1,
        id="b",
        timestamp_ms=5,
        payload=b"1",
        key=None,
        priority=1,
        headers={"h": "1"},
        parent="p",
        producer="me",
    )
    assert type(jobs[0].event.payload) is bytes


def test_events_of_payloads_alone_have_the_defaults(tmp_path: Path) -> None:
    jobs = jobs_of(
        "t", portions(tmp_path, Columns([b"0", b"1"], 5), (0, 2)), by_key=False
    )

    first, second = (one.event for one in jobs)
    assert (first.offset, second.offset) == (0, 1)
    assert first.id != second.id
    assert (first.key, first.priority, first.headers) == (None, 0, {})
    assert first.producer is None
    assert [one.lane for one in jobs] == [None, None]


def test_some_columns_may_be_missing() -> None:
    found = events_of(
        "t",
        {
            "offsets": [4],
            "timestamps": [5],
            "ids": ["i"],
            "payloads": [b"x"],
            "parents": ["p"],
        },
    )

    assert found == [
        Event(topic="t", offset=4, id="i", timestamp_ms=5, payload=b"x", parent="p")
    ]


def test_a_payload_is_decoded_for_the_handler() -> None:
    typed = job(3, b"5").typed(Codec(int))

    assert (typed.payload, typed.offset, typed.id) == (5, 3, "e3")
    assert job(3, b"5").typed(Codec(bytes)).payload == b"5"
    with pytest.raises(UnfitPayload):
        job(3, b"five").typed(Codec(int))
