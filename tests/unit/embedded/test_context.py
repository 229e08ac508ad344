from __future__ import annotations

from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.embedded.context import Context
from penstock.embedded.topic import Topic
from penstock.errors import InvalidBatch, ReservedName, UnfitPayload
from tests.unit.embedded.scene import event


def context(*offsets: int) -> Context:
    return Context("me", [event(one) for one in offsets], 2, 110.0, ManualClock(100.0))


def test_what_is_published_has_the_event_as_its_parent() -> None:
    made = context(7)

    made.publish("u", b"x", key=b"k", priority=3, headers={"a": "b"}, id="i")
    made.publish(Topic("n", int), 5, parent="other")

    first, second = made.intents()
    assert (first.topic, first.payload, first.parent) == ("u", b"x", "e7")
    assert (first.key, first.priority, first.id) == (b"k", 3, "i")
    assert first.headers == {"a": "b"}
    assert (second.payload, second.parent) == (b"5", "other")


def test_in_a_batch_the_first_event_is_the_parent() -> None:
    made = context(3, 4)

    made.publish("u", b"x")

    assert made.event == event(3)
    assert [one.parent for one in made.intents()] == ["e3"]


def test_what_is_refused_is_not_published() -> None:
    made = context(0)
    numbers: Topic[Any] = Topic("n", int)

    with pytest.raises(ReservedName):
        made.publish("$errors", b"x")
    with pytest.raises(UnfitPayload):
        made.publish(numbers, "five")
    with pytest.raises(InvalidBatch):
        made.publish("u", b"x", id="")

    assert made.intents() == []


def test_time_runs_out() -> None:
    clock = ManualClock(100.0)
    made = Context("me", [event()], 1, 110.0, clock)

    before = made.remaining_s
    clock.advance(12)

    assert (before, made.remaining_s) == (10.0, -2.0)
    assert (made.subscriber, made.tries) == ("me", 1)


def test_what_comes_after_the_try_is_not_lost_silently() -> None:
    context = Context("a", [], 1, 0.0, ManualClock())
    context.over = True

    with pytest.raises(RuntimeError, match="the try is over"):
        context.publish("t", b"late", parent="x")
