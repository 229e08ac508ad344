"""Many topics made by one read: the others have turns in between."""

from __future__ import annotations

import json

import pytest

from penstock.gateway.held_lines import NEW_TOPICS
from tests.unit.gateway.scene import Peer, Scene

MANY = 2 * NEW_TOPICS + 50


def topics(scene: Scene) -> int:
    return sum(name.startswith("n/") for name in scene.broker.log.topics())


def said(kind: str) -> bytes:
    """Lines that each make a topic, as one read."""
    sub = [json.dumps({"type": "SUB", "topic": f"n/{i}"}) for i in range(MANY)]
    lines = {
        "pub": [f"pub n/{i} {{}}" for i in range(MANY)],
        "SUB": ["log anna", *sub],
    }
    return "".join(f"{line}\n" for line in lines[kind]).encode()


def go_on(scene: Scene, peer: Peer) -> None:
    peer.gateway.go_on(scene.clock.now_s())
    scene.pump()


@pytest.mark.parametrize("kind", ["pub", "SUB"])
def test_a_read_makes_some_topics_and_goes_on_in_its_turn(
    scene: Scene, kind: str
) -> None:
    peer = scene.connect("consumer" if kind == "SUB" else "line")
    made: list[int] = []

    peer.gateway.receive(said(kind), scene.clock.now_s())
    while peer.gateway.busy:
        made.append(topics(scene))
        go_on(scene, peer)

    assert made == [NEW_TOPICS, 2 * NEW_TOPICS]
    assert topics(scene) == MANY


def test_answers_come_in_the_order_of_the_lines(scene: Scene) -> None:
    peer = scene.connect("line")

    answers = peer.say("confirm on", *said("pub").decode().splitlines(), "nonsense")

    published = [one.split()[1] for one in answers[2:-1]]  # behind the greeting
    assert published == [f"n/{i}" for i in range(MANY)]
    assert answers[-1] == 'error: unknown command: ["nonsense"]'


def test_topics_that_are_there_cost_no_turn(scene: Scene) -> None:
    peer = scene.connect("line")
    peer.gateway.receive(said("pub"), scene.clock.now_s())
    while peer.gateway.busy:
        go_on(scene, peer)

    peer.gateway.receive(said("pub"), scene.clock.now_s())

    assert not peer.gateway.busy
    assert scene.broker.log.topic(f"n/{MANY - 1}").next_offset == 2


def test_whoever_is_gone_makes_no_more_topics(scene: Scene) -> None:
    peer = scene.connect("line")
    peer.gateway.receive(said("pub"), scene.clock.now_s())

    peer.gateway.disconnected(scene.clock.now_s())

    assert not peer.gateway.busy
