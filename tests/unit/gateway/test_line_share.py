from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.gateway.options import LineOptions
from penstock.log import Columns
from tests.unit.gateway.scene import Peer, Rules, Scene

SESSION = "acknowledged from current session"


@pytest.fixture
def reader(scene: Scene) -> Peer:
    """Subscribed to ``t``, as many events ahead as there may be."""
    scene.broker.create_topic("t")
    peer = scene.connect("line")
    peer.say("window 100000", "sub t")
    return peer


def publish(scene: Scene, *ids: str, priorities: list[int] | None = None) -> None:
    columns = Columns([b"1"] * len(ids), 0, ids=list(ids), priorities=priorities)
    scene.broker.publish("t", columns)
    scene.pump()


def ids_in(lines: list[str]) -> list[str]:
    return [json.loads(line)["id"] for line in lines]


def test_of_several_events_with_one_id_the_one_delivered_first_is_settled(
    scene: Scene, reader: Peer
) -> None:
    publish(scene, "a", "same", "same")
    publish(scene, "same", "b", "a")
    assert len(reader.read()) == 6
    (subscription,) = scene.broker.subscriptions

    owed = []
    for _ in range(3):
        reader.say("ack t same")
        owed.append(list(subscription.owed))

    assert owed == [[0, 2, 3, 4, 5], [0, 3, 4, 5], [0, 4, 5]]
    assert reader.say("ack t same") == ["no_event_error: same"]
    assert reader.say("ack t a", "ack t b", "ack t a") == [
        *[SESSION] * 3,
        "no available message",
    ]


def test_ids_need_not_be_unique_in_one_page(scene: Scene, reader: Peer) -> None:
    publish(scene, *["same"] * 3)

    assert ids_in(reader.read()) == ["same"] * 3
    assert reader.say(*["ack t same"] * 4) == [
        *[SESSION] * 3,
        "no_event_error: same",
        "no available message",
    ]


@pytest.mark.parametrize(
    "order", ["abcdef", "abc", "bcd", "fedcba", "abdf", "def", "a"]
)
def test_a_run_of_acks_in_any_order_settles_each_of_them_once(
    scene: Scene, reader: Peer, order: str
) -> None:
    publish(scene, *"abcdef")
    reader.read()
    (subscription,) = scene.broker.subscriptions
    done = ["no available message"] if len(order) == 6 else []

    assert reader.say(*[f"ack t {id_}" for id_ in order]) == [
        *[SESSION] * len(order),
        *done,
    ]
    assert subscription.lag() == 6 - len(order)
    assert reader.say(*[f"ack t {id_}" for id_ in order]) == [
        f"no_event_error: {id_}" for id_ in order
    ]


def test_events_from_before_the_session_are_acknowledged_from_the_logs(
    scene: Scene,
) -> None:
    scene.broker.create_topic("t")
    first = scene.connect("line")
    first.say("as anna", "window 10", "sub t")
    first.disconnect()
    publish(scene, "1", "2")
    reader = scene.connect("line")
    reader.say("as anna", "window 10", "sub t")
    publish(scene, "3")
    reader.read()

    assert reader.say("ack t 1", "ack t 3", "ack t 2") == [
        "acknowledged from logs ev_id=1",
        SESSION,
        "acknowledged from logs ev_id=2",
        "no available message",
    ]


def test_single_events_of_a_page_are_the_same_as_the_whole_page(tmp_path: Path) -> None:
    """Readers of one event at a time: first rendered alone, then with their page."""
    scene = Scene(tmp_path, Rules(line=LineOptions(window=1)))
    scene.broker.create_topic("t")
    one, many = scene.connect("line"), scene.connect("line")
    one.say("sub t")
    many.say("window 10", "sub t")
    columns = Columns(
        [b"%d" % number for number in range(8)],
        0,
        ids=list("abcdefgh"),
        headers=[{"fields": f'{{"x":{number}}}'} for number in range(8)],
    )
    scene.broker.publish("t", columns)
    scene.pump()

    lines = one.read()
    for id_ in "abcdefg":
        lines += one.say(f"ack t {id_}")[1:]

    assert lines == many.read()
    assert lines[3] == '{"topic":"t","priority":0,"msg":3,"id":"d","x":3}'
    scene.close()


def test_priorities_decide_within_a_page_and_across_pages(
    scene: Scene, reader: Peer
) -> None:
    reader.say("unsub t")
    scene.broker.create_topic("hold")
    slow = scene.connect("line")
    slow.say("sub t")
    publish(scene, "a")
    publish(scene, "b", "c", "d", priorities=[1, 9, 1])
    publish(scene, "e", "f", priorities=[9, 0])

    order = ids_in(slow.read())
    for _ in range(5):
        order += ids_in(slow.say(f"ack t {order[-1]}")[1:])

    assert order == ["a", "c", "e", "b", "d", "f"]


def test_what_compaction_took_is_not_waited_for(scene: Scene, reader: Peer) -> None:
    columns = Columns([b"1"] * 4, 0, ids=list("abcd"), keys=[b"k", b"k", None, b"k"])
    reader.say("unsub t")
    scene.broker.publish("t", columns)
    scene.pump()
    scene.broker.log.roll("t")
    scene.broker.log.compact("t")
    scene.broker.pages.forget("t")
    late = scene.connect("line")
    late.say("as anna", "window 9", "sub t")
    scene.broker.seek("anna", "t", "earliest")
    scene.pump()

    assert ids_in(late.read()) == ["c", "d"]
    assert late.say("ack t d", "ack t c")[-1] == "no available message"
