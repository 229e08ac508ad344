from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.client.chains import chain, place_of
from penstock.client.plan import drive_blocking
from penstock.desk.views.chains import ChainEvent, ChainPage


def event(number: int) -> ChainEvent:
    return ChainEvent(
        topic="t",
        offset=number,
        id=f"e{number}",
        timestamp=number,
        parent=None,
        producer=None,
        key=None,
        payload=b"",
        payload_bytes=0,
        level=0,
        asked=True,
    )


def test_pages_become_one_chain() -> None:
    asked: list[dict[str, object]] = []
    pages = [
        ChainPage(events=[event(0)], cut=None, behind=9, next=7),
        ChainPage(events=[], cut=None, behind=5, next=7),
        ChainPage(events=[event(1)], cut="limit", behind=0, next=None),
    ]

    def answer(verb: str, arguments: Mapping[str, object]) -> object:
        asked.append({"verb": verb, **arguments})
        return pages[len(asked) - 1]

    found = drive_blocking(chain("x", limit=2), answer, lambda _: None)

    assert found.events == [event(0), event(1)]
    assert (found.cut, found.behind) == ("limit", 0)
    assert asked == [
        {
            "verb": "chains.show",
            "id": "x",
            "limit": 2,
            "direction": "both",
            "whole": False,
        },
        {"verb": "chains.show", "next": 7},
        {"verb": "chains.show", "next": 7},
    ]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("orders:17", ("orders", 17)),
        ("a:b:0", ("a:b", 0)),
        ("orders", None),
        (":5", None),
        ("orders:", None),
        ("orders:-1", None),
        ("orders:٣", None),
        ("orders:" + "9" * 19, None),
    ],
)
def test_a_place_is_told_from_other_names(
    name: str, place: tuple[str, int] | None
) -> None:
    assert place_of(name) == place
