from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.delivery.amend import EventCopy, amended_frame, amended_page, event_at
from penstock.errors import InvalidBatch
from penstock.model.event import Event
from penstock.model.policy import Order, Policy
from tests.unit.delivery.scene import RESTARTS, Scene

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
EVENTS = st.builds(
    Event,
    topic=st.just("t"),
    offset=st.integers(0, 2**40),
    id=TEXT,
    timestamp_ms=st.integers(-(2**60), 2**60),
    payload=st.binary(max_size=50),
    key=st.none() | st.binary(max_size=9),
    priority=st.integers(0, 255),
    headers=st.dictionaries(TEXT, TEXT, max_size=3),
    parent=st.none() | TEXT,
    producer=st.none() | TEXT,
)


@pytest.mark.slow
@given(event=EVENTS)
def test_copy_is_the_event_again_at_its_place(event: Event) -> None:
    assert EventCopy.of(event).event("t", event.offset) == event


@given(event=EVENTS, payload=st.binary(max_size=50), copied=st.booleans())
def test_amended_event_differs_in_its_payload_alone(
    event: Event, payload: bytes, copied: bool
) -> None:
    source = EventCopy.of(event) if copied else event

    page = amended_page("t", amended_frame(source, "t", event.offset, payload))

    found = event_at(page, 0)
    assert (len(page), page.ids, page.payloads) == (1, [event.id], [payload])
    assert EventCopy.of(found).event("t", event.offset) == found
    assert found.payload == payload
    fields = set(Event.__struct_fields__) - {"payload"}
    assert all(getattr(found, name) == getattr(event, name) for name in fields)


def test_payload_that_is_none_is_refused() -> None:
    copy = EventCopy(id="a", timestamp_ms=0)
    with pytest.raises(InvalidBatch):
        amended_frame(copy, "t", 0, "text")  # type: ignore[arg-type]


def amend(scene: Scene, offset: int, payload: bytes, priority: int = 0) -> None:
    copy = EventCopy(id="abc", timestamp_ms=5, priority=priority)
    frame = amended_frame(copy, "t", offset, payload)
    assert scene.subscription().add_back(offset, priority, frame)


def payloads(scene: Scene, policy: Policy) -> list[bytes]:
    consumer = scene.subscribe(policy)
    taken = scene.broker.take(consumer, scene.now_s, 10)
    return [one.page.payloads[at] for one in taken for at in range(one.lo, one.hi)]


@RESTARTS
@pytest.mark.parametrize("order", ["log", "priority"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_amended_event_is_delivered_in_place_of_the_stored_one(
    restart: str, order: Order, qos: int
) -> None:
    scene = Scene()
    policy = Policy(order=order, qos=qos, window=9)  # type: ignore[arg-type]
    scene.publish(1, 2)
    scene.broker.subscribe("ann", "t", policy)
    amend(scene, 0, b"better", 1)
    scene.commit()

    scene.restart(restart)

    assert payloads(scene, policy) == [b"better"]


@RESTARTS
def test_amended_event_outlives_the_stored_one(restart: str) -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.broker.subscribe("ann", "t", Policy())
    amend(scene, 0, b"better")
    scene.log.trim("t", 2)

    scene.restart(restart)

    assert payloads(scene, Policy()) == [b"better"]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_amended_event_is_forgotten_when_it_is_settled(checkpoint: bool) -> None:
    scene = Scene()
    scene.publish(0)
    scene.broker.subscribe("ann", "t", Policy())
    amend(scene, 0, b"better")
    scene.commit()
    consumer = scene.subscribe()
    scene.drain(consumer)
    assert consumer.subscription.amended == {}
    scene.commit()
    if checkpoint:
        scene.log.checkpoint()

    scene.restart()

    assert scene.subscription().amended == {}
    assert list(scene.subscription().owed) == []


def test_event_that_is_owed_again_as_stored_is_amended_no_more() -> None:
    scene = Scene()
    scene.publish(7)
    scene.broker.subscribe("ann", "t", Policy())
    amend(scene, 0, b"better")
    scene.commit()
    scene.drain(scene.subscribe())
    scene.subscription().add_back(0, 0)
    scene.commit()

    scene.restart()

    assert payloads(scene, Policy()) == [b"7"]


def test_amended_event_is_kept_by_a_checkpoint() -> None:
    scene = Scene()
    scene.publish(0)
    scene.broker.subscribe("ann", "t", Policy())
    amend(scene, 0, b"better")
    scene.log.checkpoint()

    scene.restart()

    assert payloads(scene, Policy()) == [b"better"]


def test_seeking_forgets_amended_events() -> None:
    scene = Scene()
    scene.publish(0)
    scene.broker.subscribe("ann", "t", Policy())
    amend(scene, 0, b"better")

    scene.broker.seek("ann", "t", 0)

    assert payloads(scene, Policy()) == [b"0"]
