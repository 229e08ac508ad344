"""Words and numbers become offsets within the topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.broker.starts import accepted_start, check_resumed, resolved
from penstock.delivery.subscription import Subscription
from penstock.errors import InvalidOption, TakenInOrder, WrongOrder, WrongQos
from penstock.log import Columns, Log
from penstock.model.policy import Policy
from tests.unit.delivery.scene import Outlet, Scene


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        ("earliest", 1),
        ("latest", 4),
        (2, 2),
        ("3", 3),
        (0, 1),
        (99, 4),
        ("time:1500", 2),
        ("time:9000", 3),
    ],
)
def test_start_means_an_offset_of_the_topic(
    tmp_path: Path, start: str | int, offset: int
) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        log.append("t", Columns([b"a", b"b", b"c"], [1000, 1000, 2000]))
        log.sync()
        log.trim("t", 1)
        log.append("t", Columns([b"not committed yet"], 3000))

        assert resolved(log, "t", start) == offset


def known() -> tuple[Scene, Subscription]:
    scene = Scene()
    return scene, scene.broker.subscribe("ann", "t", Policy(order="log", qos=1))


@pytest.mark.parametrize(
    "policy", [Policy(order="log", qos=1), Policy(order="log", qos=1, window=7)]
)
def test_a_subscription_goes_on_by_rules_of_its_kind(policy: Policy) -> None:
    check_resumed(known()[1], policy)


def test_a_subscription_does_not_go_on_in_another_order() -> None:
    with pytest.raises(WrongOrder):
        check_resumed(known()[1], Policy(order="priority", qos=1))


def test_a_subscription_that_owes_something_keeps_its_qos() -> None:
    scene, one = known()
    scene.publish(0)
    scene.take(scene.broker.attach(one, Outlet()))
    one.consumers.clear()

    with pytest.raises(WrongQos):
        check_resumed(one, Policy(order="log", qos=2))


def test_events_in_order_go_to_one_at_a_time() -> None:
    scene, one = known()
    scene.broker.attach(one, Outlet())
    strict = Policy(order="log", qos=1, in_order=True)

    with pytest.raises(TakenInOrder):
        check_resumed(one, strict)


@pytest.mark.parametrize(
    "start", ["latest", "earliest", 0, 1 << 60, "time:0", "time:17"]
)
def test_places_in_a_topic_are_accepted(start: str | int) -> None:
    assert accepted_start(start) == start


@pytest.mark.parametrize(
    "start",
    [
        "",
        "Latest",
        "17",
        -1,
        "time:",
        "time:x",
        "time:-1",
        "time:٣",
        "time:" + "9" * 19,
    ],
)
def test_others_are_refused(start: str | int) -> None:
    with pytest.raises(InvalidOption, match="^option start is "):
        accepted_start(start)
