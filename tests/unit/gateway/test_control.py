from __future__ import annotations

from pathlib import Path

from penstock.gateway.options import ControlOptions
from tests.unit.gateway.scene import Peer, Rules, Scene

GREETING = "Type `twitter` to start processing SSE (from Twitter API)"
STARTED = "[Command] run :twitter"
OTHER = "[Command] run :other"


def publish(scene: Scene, *texts: str) -> None:
    writer = scene.connect("line")
    writer.say(*(f'pub tweets {{"id":"{text}","msg":1}}' for text in texts))


def said(peer: Peer) -> list[str]:
    """What has come since somebody looked."""
    return peer.say()


def test_a_session_greets_and_knows_one_word(scene: Scene) -> None:
    peer = scene.connect("control")

    assert peer.say("twitter", "Twitter", " twitter", "x" * 2000, "twitter") == [
        GREETING,
        STARTED,
        OTHER,
        OTHER,
        OTHER,
        STARTED,
    ]


def test_tweets_are_shown_from_now_on_and_once(scene: Scene) -> None:
    publish(scene, "before")
    peer, silent = scene.connect("control"), scene.connect("control")
    peer.say("twitter", "twitter")

    publish(scene, "a", "b")

    shown = said(peer)
    assert [line[: len("tweet: worker-")] for line in shown] == ["tweet: worker-"] * 2
    assert said(silent) == [GREETING]


def test_many_tweets_are_all_shown(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(control=ControlOptions(window=10)))
    peer = scene.connect("control")
    peer.say("twitter")

    publish(scene, *map(str, range(1000)))

    assert len(said(peer)) == 1000
    scene.close()


def test_a_word_without_an_end_counts_when_the_peer_has_said_all(scene: Scene) -> None:
    peer = scene.connect("control")
    peer.send(b"twitter")
    peer.gateway.eof(0.0)
    peer.pull()

    assert said(peer) == [GREETING, STARTED]
    assert not peer.gateway.closing


def test_who_wants_nothing_and_says_no_more_is_let_go(scene: Scene) -> None:
    peer = scene.connect("control")
    peer.gateway.eof(0.0)

    assert peer.gateway.closing


def test_a_session_leaves_nothing_behind(scene: Scene) -> None:
    peer = scene.connect("control")
    peer.say("twitter")
    assert len(scene.broker.subscriptions) == 1

    peer.disconnect()

    assert len(scene.broker.subscriptions) == 0


def test_a_topic_that_is_deleted_ends_the_stream(scene: Scene) -> None:
    peer = scene.connect("control")
    peer.say("twitter")

    scene.broker.delete_topic("tweets")
    scene.pump()

    [line] = said(peer)
    assert line.startswith("[Command] end of the stream: ")
    assert peer.say("twitter") == [STARTED]


def test_a_topic_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    rules = Rules(control=ControlOptions(topic="tweets"))
    scene = Scene(tmp_path, rules)
    peer = scene.connect("control")
    peer.say()
    scene.broker.log.close()

    [line] = peer.say("twitter")

    assert line.startswith("[Command] error: ")
    scene.close()
