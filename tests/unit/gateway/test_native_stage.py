from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Grants, Rule
from penstock.wire.native import Answer, Ask, Hello, Publish, RequestRefused, Stage
from tests.unit.gateway.native_peer import NativePeer, only
from tests.unit.gateway.scene import Scene, limited


def commit(seq: int, epoch: int = 0, *parts: list[int]) -> Ask:
    return Ask(seq, "sinks.commit", {"query": "q", "epoch": epoch, "parts": [*parts]})


def stage(seq: int, *payloads: bytes, epoch: int = 0, **named: object) -> Stage:
    return Stage(seq, "q", epoch, 0, 0, Publish(0, "t", [*payloads]), **named)  # type: ignore[arg-type]


def test_what_is_staged_is_stored_by_the_commit(scene: Scene) -> None:
    peer = NativePeer(scene, Hello(None, None, "job"))
    staged = Publish(0, "t", [b"a"], ["i"], [b"k"], [7], [{"h": "v"}], ["before"])

    got = peer.say(Stage(1, "q", 0, 3, 9, staged), commit(2, 0, [3, 9]))

    result = {"committed": True, "before": False, "events": 1, "note": ""}
    assert only(Answer, got) == [Answer(1, True), Answer(2, result)]
    (event,) = scene.broker.log.read("t", 0)[0].events()
    assert (event.id, event.key, event.priority) == ("i", b"k", 7)
    assert (event.headers, event.parent, event.producer) == (
        {"h": "v"},
        "before",
        "job",
    )


def test_a_commit_is_answered_when_it_is_durable(scene: Scene) -> None:
    peer = NativePeer(scene)
    peer.say(stage(1, b"a"))
    scene.commits = False

    assert peer.say(commit(2, 0, [0, 0]), commit(3, 0, [0, 0])) == []
    scene.commit()

    first, second = only(Answer, peer.read())
    assert (first.seq, second.seq) == (2, 3)
    assert second.result == {"committed": True, "before": True, "events": 0, "note": ""}


def test_a_commit_whose_write_fails_was_not_done(scene: Scene) -> None:
    peer = NativePeer(scene)
    peer.say(stage(1, b"a"))
    scene.commits = False
    peer.say(commit(2, 0, [0, 0]), commit(3, 0, [0, 0]))
    scene.fail_commit()

    lost = only(RequestRefused, peer.read())
    assert [(one.seq, one.error) for one in lost] == [
        (2, "WriteFailed"),
        (3, "WriteFailed"),
    ]

    scene.commits = True
    (again,) = only(Answer, peer.say(commit(4, 0, [0, 0])))
    assert again.result == {"committed": True, "before": False, "events": 1, "note": ""}
    assert scene.broker.log.topic("t").end_offset == 1


def test_a_slow_commit_that_is_asked_again_is_answered_when_it_is_durable(
    scene: Scene,
) -> None:
    """Whoever asked first has given up; what it has begun has not ended yet."""
    first, second = NativePeer(scene), NativePeer(scene)
    first.say(stage(1, b"a"))
    scene.commits = False
    first.say(commit(2, 0, [0, 0]))
    slow = scene.broker.log.begin_commit()
    first.peer.disconnect()

    assert slow is not None
    assert second.say(commit(1, 0, [0, 0])) == []
    slow.run()
    scene.pump()
    assert second.read() == []
    scene.broker.log.end_commit(slow)
    scene.pump()

    (answer,) = only(Answer, second.read())
    assert answer.result == {"committed": True, "before": True, "events": 0, "note": ""}


def test_a_slow_commit_that_fails_is_told_to_whoever_asked_again(scene: Scene) -> None:
    first, second = NativePeer(scene), NativePeer(scene)
    first.say(stage(1, b"a"))
    scene.commits = False
    first.say(commit(2, 0, [0, 0]))
    slow = scene.broker.log.begin_commit()
    # With something of others behind it, which fails with it.
    second.say(Publish(1, "u", [b"b"]), commit(2, 0, [0, 0]))

    assert slow is not None
    scene.files.fail("write", "journal")
    slow.run()
    scene.broker.log.end_commit(slow)
    scene.pump()

    assert [one.error for one in only(RequestRefused, second.read())] == [
        "WriteFailed"
    ] * 2
    scene.commits = True
    (answer,) = only(Answer, second.say(commit(3, 0, [0, 0])))
    assert answer.result == {
        "committed": True,
        "before": False,
        "events": 1,
        "note": "",
    }
    assert scene.broker.log.topic("t").end_offset == 1


def test_a_crash_in_a_slow_commit_finds_nobody_answered(scene: Scene) -> None:
    first, second = NativePeer(scene), NativePeer(scene)
    first.say(stage(1, b"a"))
    scene.commits = False
    first.say(commit(2, 0, [0, 0]))
    assert scene.broker.log.begin_commit() is not None
    assert second.say(commit(1, 0, [0, 0])) == []

    scene.restart(kill=True)

    assert scene.broker.sinks.last("q") is None
    assert not scene.broker.log.has_topic("t")


def test_an_epoch_that_is_committed_is_not_kept_again(scene: Scene) -> None:
    peer = NativePeer(scene)
    peer.say(stage(1, b"a"), commit(2, 0, [0, 0]))

    assert peer.say(stage(3, b"a")) == [Answer(3, False)]
    assert scene.broker.sinks.staging.bytes == 0


def test_what_is_staged_outlives_the_connection(scene: Scene) -> None:
    first = NativePeer(scene)
    first.say(stage(1, b"a"))
    first.peer.disconnect()

    (answer,) = only(Answer, NativePeer(scene).say(commit(1, 0, [0, 0])))

    assert answer.result == {
        "committed": True,
        "before": False,
        "events": 1,
        "note": "",
    }


def test_a_restart_is_told(scene: Scene) -> None:
    NativePeer(scene).say(stage(1, b"a"))
    scene.restart(kill=True)

    (problem,) = only(RequestRefused, NativePeer(scene).say(commit(1, 0, [0, 0])))

    assert problem.error == "MissingStage"
    assert problem.text == "epoch 0 of q: attempt 0 of partition 0 is not staged"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (Publish(0, "t", [b"a"], dedup_ids=["d"]), "InvalidBatch"),
        (Publish(0, "t", [b"a"], ids=[""]), "InvalidBatch"),
        (Publish(0, "t", [b"a"], parents=["a\n"]), "InvalidBatch"),
        (Publish(0, "$t", [b"a"]), "ReservedName"),
        (Publish(0, "t", [b"a"], priorities=[256]), "InvalidBatch"),
    ],
)
def test_what_cannot_be_stored_is_refused_at_once(
    scene: Scene, wrong: Publish, error: str
) -> None:
    (problem,) = only(
        RequestRefused, NativePeer(scene).say(Stage(1, "q", 0, 0, 0, wrong))
    )

    assert (problem.seq, problem.error) == (1, error)


def test_what_nobody_commits_is_dropped_in_time(scene: Scene) -> None:
    peer = NativePeer(scene)
    peer.say(stage(1, b"a"))

    scene.advance(scene.rules.broker.staged_ttl_s)

    assert scene.broker.sinks.staging.bytes == 0


def test_a_user_with_rules_stages_and_commits_what_they_say(tmp_path: Path) -> None:
    rules = limited(Rule("publish", "t"))
    rules.passwords["bert"] = "pw"
    rules.grants["bert"] = Grants(user="bert")
    scene = Scene(tmp_path, rules)
    anna, bert = (NativePeer(scene, Hello(name, "pw", "")) for name in ("anna", "bert"))
    out = Stage(1, "q", 0, 1, 0, Publish(0, "out", [b"x"]))

    refused = anna.say(out, stage(2, b"a"), Stage(3, "q", 0, 2, 0, Publish(0, "", [])))
    committed = anna.say(commit(4, 0, [0, 0], [2, 0]))
    of_bert = bert.say(Stage(5, "q", 1, 0, 0, Publish(0, "out", [b"x"])), commit(6, 7))
    assert only(Answer, anna.say(commit(7, 1)))

    assert [(one.seq, one.error) for one in only(RequestRefused, refused)] == [
        (1, "NotAllowed")
    ]
    assert only(Answer, refused) == [Answer(2, True), Answer(3, True)]
    assert len(only(Answer, committed)) == 1
    said = "user bert may not write with the query of another user, q"
    assert [one.text for one in only(RequestRefused, of_bert)] == [
        f"{said}: it needs an administrator"
    ] * 2
    assert scene.broker.log.topics() == ["t"]
    scene.close()
