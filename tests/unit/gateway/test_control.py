from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from penstock.desk.figures import ProcessInfo
from penstock.desk.views.figures import Pipeline
from penstock.gateway.options import ControlOptions
from tests.unit.gateway.scene import Peer, Rules, Scene

GREETING = "Type `twitter` to start processing SSE (from Twitter API)"
STARTED = "[Command] run :twitter"
OTHER = "[Command] run :other"
AGAIN = "[Command] already running :twitter"
WOKEN = "[Command] the stream rested: it begins now"
NOBODY = (
    "[Command] missing: a pipeline, penstock up runs one; "
    "shown is what others publish to tweets"
)
NO_SPARK = (
    "[Command] missing: Spark: penstock up runs with --no-spark, "
    "tweets come to firehose only"
)


def process(**told: bool) -> ProcessInfo:
    """What is around a broker that ``penstock up`` runs; nothing else is asked for."""
    pipeline = Pipeline(stages=[], at_ms=1, **{"running": True, **told})
    return cast(ProcessInfo, SimpleNamespace(pipeline=lambda: pipeline))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A broker with a pipeline that runs."""
    scene = Scene(tmp_path)
    scene.figures.process = process()
    yield scene
    scene.close()


def publish(scene: Scene, *texts: str) -> None:
    writer = scene.connect("line")
    writer.say(*(f'pub tweets {{"id":"{text}","msg":1}}' for text in texts))


def said(peer: Peer) -> list[str]:
    """What has come since somebody looked."""
    return peer.say()


def test_help_lists_the_commands(scene: Scene) -> None:
    peer = scene.connect("control")

    assert peer.say("help", "help me") == [
        GREETING,
        "twitter  start the stream if it rests, and show its tweets from now on",
        "help     this list; closing the connection ends the show, not the stream",
        OTHER,
    ]


def test_a_session_greets_and_knows_one_word(scene: Scene) -> None:
    peer = scene.connect("control")

    assert peer.say("twitter", "Twitter", " twitter", "x" * 2000, "twitter") == [
        GREETING,
        STARTED,
        OTHER,
        OTHER,
        OTHER,
        AGAIN,
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
    scene.figures.process = process()
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

    scene.commit()
    scene.pump()

    [line] = said(peer)
    assert line.startswith("[Command] end of the stream: ")
    assert peer.say("twitter") == [STARTED]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, [STARTED]),
        ({"resting": True}, [STARTED, WOKEN]),
        ({"spark": False}, [STARTED, NO_SPARK]),
        ({"spark": False, "resting": True}, [STARTED, WOKEN, NO_SPARK]),
        ({"running": False, "resting": True}, [STARTED, NOBODY]),
    ],
)
def test_a_stream_that_rests_is_asked_for_and_what_is_missing_is_said(
    scene: Scene, told: dict[str, bool], said: list[str]
) -> None:
    scene.figures.process = process(**told)
    peer = scene.connect("control")
    assert not scene.figures.pipeline().asked

    assert peer.say("twitter") == [GREETING, *said]
    assert scene.figures.pipeline().asked == (WOKEN in said)


def test_a_stream_that_came_to_rest_later_is_asked_for_by_another_twitter(
    scene: Scene,
) -> None:
    scene.figures.process = None
    peer = scene.connect("control")
    assert peer.say("twitter") == [GREETING, STARTED, NOBODY]

    scene.figures.process = process(resting=True)

    assert peer.say("twitter", "twitter") == [AGAIN, WOKEN, AGAIN]
    assert scene.figures.pipeline().asked


def test_without_a_pipeline_what_others_publish_is_shown(scene: Scene) -> None:
    scene.figures.process = None
    peer = scene.connect("control")
    assert peer.say("twitter") == [GREETING, STARTED, NOBODY]

    publish(scene, "a")

    assert len(said(peer)) == 1


def test_who_leaves_stops_showing_and_not_the_stream(scene: Scene) -> None:
    scene.figures.process = process(resting=True)
    peer = scene.connect("control")
    peer.say("twitter")

    peer.disconnect()

    assert scene.figures.pipeline().asked
    assert scene.connect("control").say() == [GREETING]


def test_a_topic_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    rules = Rules(control=ControlOptions(topic="tweets"))
    scene = Scene(tmp_path, rules)
    peer = scene.connect("control")
    peer.say()
    scene.broker.log.close()

    [line] = peer.say("twitter")

    assert line.startswith("[Command] error: ")
    scene.close()
