from __future__ import annotations

from typing import Any

from penstock.cli.chain import tree
from penstock.desk.views.chains import ChainEvent

START_MS = 1_700_000_000_000


def event(topic: str, id_: str, parent: str | None = None, **more: Any) -> ChainEvent:
    fields: dict[str, Any] = {
        "topic": topic,
        "offset": 0,
        "id": id_,
        "timestamp": START_MS,
        "parent": parent,
        "producer": None,
        "key": None,
        "payload": b"",
        "payload_bytes": 0,
        "level": 0,
        "asked": False,
    }
    return ChainEvent(**{**fields, **more})


def test_effects_stand_below_their_cause_in_the_order_of_time() -> None:
    events = [
        event("pay", "p", "o", timestamp=START_MS + 12, asked=True, payload=b"{}"),
        event("order", "o", level=-1, payload=b'{"n":1}'),
        event("ship", "s", "p", timestamp=START_MS + 1500),
        event("stock", "t", "o", timestamp=START_MS + 61_000),
        event("mail", "m", "p", timestamp=START_MS + 3_600_000 * 3 + 60_000),
    ]

    assert tree(events) == [
        'order:0  o  2023-11-14T22:13:20.000Z  {"n":1}',
        "├─ ▶ pay:0  p  +12 ms  {}",
        "│  ├─ ship:0  s  +1.5 s",
        "│  └─ mail:0  m  +3 h 1 min",
        "└─ stock:0  t  +1 min 1 s",
    ]


def test_a_cause_that_is_not_there_is_named() -> None:
    (line,) = tree([event("a", "x", "gone")])

    assert line == "a:0  x  2023-11-14T22:13:20.000Z  (caused by gone)"


def test_a_clock_that_went_back_is_shown() -> None:
    events = [event("a", "x"), event("b", "y", "x", timestamp=START_MS - 5)]

    assert tree(events)[1] == "└─ b:0  y  -5 ms"


def test_of_two_causes_with_one_id_the_first_has_the_effects() -> None:
    events = [
        event("a", "x"),
        event("b", "x", timestamp=START_MS + 1),
        event("c", "y", "x", timestamp=START_MS + 2),
    ]

    assert tree(events)[1:] == [
        "└─ c:0  y  +2 ms",
        "b:0  x  2023-11-14T22:13:20.001Z",
        "└─ (what x caused is drawn above)",
    ]


def test_a_circle_is_drawn_once() -> None:
    events = [
        event("a", "x", "y", asked=True),
        event("b", "y", "x", level=-1),
        event("c", "z", "z", timestamp=START_MS + 9),
    ]

    assert tree(events) == [
        "b:0  y  2023-11-14T22:13:20.000Z  (caused by x)",
        "└─ ▶ a:0  x  +0 ms",
        "   └─ b:0  y  (drawn above)",
        "c:0  z  2023-11-14T22:13:20.009Z  (caused by z)",
        "└─ c:0  z  (drawn above)",
    ]


def test_payloads_and_ids_are_cut_and_harmless() -> None:
    events = [
        event("a", "x\x1b[2J", payload=b"y" * 200, payload_bytes=300),
        event("b", "z", payload=b"\n", payload_bytes=300),
    ]

    first, second = tree(events)
    assert first.endswith("y" * 59 + "…")
    assert "\x1b" not in first
    assert second.endswith("\\n…")


def test_a_chain_longer_than_the_stack_is_drawn() -> None:
    events = [event("a", str(n), str(n - 1), offset=n) for n in range(3000)]

    assert len(tree(events)) == 3000
