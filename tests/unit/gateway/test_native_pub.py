from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from penstock.access.grants import Rule
from penstock.client.deliveries import Offsets
from penstock.log import Batch, Columns, LogOptions
from penstock.wire.native import (
    Answer,
    Events,
    Finish,
    Hello,
    Publish,
    Published,
    RequestRefused,
    ServerMessage,
    Subscribe,
    encode,
)
from tests.unit.gateway.native_peer import NativePeer, only
from tests.unit.gateway.scene import Rules, Scene, limited


def stored(scene: Scene, topic: str = "t") -> list[Batch]:
    return scene.broker.log.read(topic, 0)


def test_published_leaves_when_the_events_are_durable(scene: Scene) -> None:
    peer = NativePeer(scene)
    scene.commits = False

    assert peer.say(Publish(7, "t", [b"a", b"b"])) == []
    scene.commit()

    (answer,) = only(Published, peer.read())
    assert (answer.seq, answer.offsets) == (7, 0)


def test_generated_ids_count_on_from_the_one_that_is_told(scene: Scene) -> None:
    (answer,) = only(
        Published, NativePeer(scene).say(Publish(1, "t", [b"a", b"b"], ids=[None, "x"]))
    )

    (batch,) = stored(scene)
    assert answer.ids == batch.ids()[:1]
    assert batch.ids()[1] == "x"


def test_everything_about_an_event_is_stored(scene: Scene) -> None:
    peer = NativePeer(scene, Hello(None, None, "shop"))

    peer.say(
        Publish(
            1,
            "t",
            [b"p"],
            ids=["i"],
            keys=[b"k"],
            priorities=[7],
            headers=[{"h": "v"}],
            parents=["before"],
        )
    )

    (event,) = stored(scene)[0].events()
    assert (event.id, event.key, event.priority) == ("i", b"k", 7)
    assert (event.headers, event.parent, event.producer) == (
        {"h": "v"},
        "before",
        "shop",
    )


def test_messages_of_one_read_become_one_batch_with_an_answer_each(
    scene: Scene,
) -> None:
    answers = NativePeer(scene).say(
        Publish(1, "t", [b"a", b"b"]),
        Publish(2, "t", [b"c"]),
        Publish(3, "u", [b"d"]),
        Publish(4, "t", [b"e"], priorities=[5]),
        Publish(5, "t", [b"f"]),
    )

    found = [(one.seq, one.offsets) for one in only(Published, answers)]
    assert found == [(1, 0), (2, 2), (3, 0), (4, 3), (5, 4)]
    (batch,) = stored(scene)
    assert batch.payloads() == [b"a", b"b", b"c", b"e", b"f"]
    told = [one.ids for one in only(Published, answers)][1]
    assert told == [batch.ids()[2]]


def test_one_bad_message_of_a_run_spoils_no_other(scene: Scene) -> None:
    answers = NativePeer(scene).say(
        Publish(1, "t", [b"a"]),
        Publish(2, "t", []),
        Publish(3, "t", [b"c"]),
    )

    assert [type(one) for one in answers] == [Published, RequestRefused, Published]
    assert stored(scene)[0].payloads() == [b"a", b"c"]


def test_a_run_for_a_topic_that_cannot_be_is_refused_one_by_one(scene: Scene) -> None:
    answers = NativePeer(scene).say(Publish(1, "$t", [b"a"]), Publish(2, "$t", [b"b"]))

    found = [(one.seq, one.error) for one in only(RequestRefused, answers)]
    assert found == [(1, "ReservedName"), (2, "ReservedName")]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Publish(1, "t", []), "InvalidBatch"),
        (Publish(1, "t", [b"x"], priorities=[256]), "InvalidBatch"),
        (Publish(1, "t", [b"x"], ids=["a\nb"]), "InvalidBatch"),
        (Publish(1, "t", [b"x"], ids=[""]), "InvalidBatch"),
        (Publish(1, "t", [b"x"], parents=["x" * 300]), "InvalidBatch"),
        (Publish(1, "t", [b"x"], dedup_ids=[" x"]), "InvalidBatch"),
        (Publish(1, "", [b"x"]), "InvalidName"),
        (Publish(1, "t\0", [b"x"]), "InvalidName"),
    ],
)
def test_what_cannot_be_stored_is_a_problem_and_makes_no_topic(
    scene: Scene, message: Publish, error: str
) -> None:
    (answer,) = only(RequestRefused, NativePeer(scene).say(message))

    assert (answer.seq, answer.error) == (1, error)
    assert scene.broker.log.topics() == []


def test_a_dedup_id_stores_once_and_answers_the_same(scene: Scene) -> None:
    peer = NativePeer(scene)

    answers = peer.say(
        Publish(1, "t", [b"a", b"b", b"a"], dedup_ids=["x", None, "x"]),
        Publish(2, "t", [b"a", b"c"], dedup_ids=["x", "y"]),
    )

    assert answers == [Published(1, [0, 1, 0]), Published(2, [0, 2])]
    scene.restart(kill=True)
    again = NativePeer(scene).say(Publish(3, "t", [b"a"], dedup_ids=["x"]))
    assert again == [Published(3, [0])]


def test_a_repetition_waits_for_the_commit_of_the_first(scene: Scene) -> None:
    one, two = NativePeer(scene), NativePeer(scene)
    scene.commits = False
    one.say(Publish(1, "t", [b"a"], dedup_ids=["x"]))

    assert two.say(Publish(1, "t", [b"a"], dedup_ids=["x"])) == []
    scene.commit()

    assert one.read() == two.read() == [Published(1, [0])]


def test_what_a_failed_write_lost_is_a_problem_for_each(scene: Scene) -> None:
    peer = NativePeer(scene)
    scene.commits = False
    peer.say(
        Publish(1, "t", [b"a"]),
        Publish(2, "t", [b"b"]),
        Publish(3, "t", [b"c"], dedup_ids=["x"]),
    )

    scene.fail_commit()

    found = [(one.seq, one.error) for one in only(RequestRefused, peer.read())]
    assert found == [(n, "WriteFailed") for n in (1, 2, 3)]
    scene.commits = True
    assert peer.say(Publish(4, "t", [b"c"], dedup_ids=["x"])) == [Published(4, [0])]


# Schemas


def test_of_publishes_in_one_read_only_what_does_not_fit_is_refused(
    scene: Scene,
) -> None:
    scene.broker.create_topic("t")
    schema = {"type": "integer"}
    scene.broker.registry.register("t", schema, type_="", at_ms=0, by="")
    peer = NativePeer(scene)

    said = peer.say(
        Publish(1, "t", [b"1"]),
        Publish(2, "t", [b"2", b'"x"']),
        Publish(3, "t", [b"3"]),
        Publish(4, "t", [b"4", b"no"], dedup_ids=["a", "b"]),
    )

    assert [one.seq for one in only(Published, said)] == [1, 3]
    refused = only(RequestRefused, said)
    assert [(one.seq, one.error) for one in refused] == [
        (2, "InvalidPayload"),
        (4, "InvalidPayload"),
    ]
    assert refused[0].text.endswith('is not of type "integer" (event 1 of the batch)')
    assert "penstock schemas show t" in refused[0].hint
    payloads = [payload for batch in stored(scene) for payload in batch.payloads()]
    assert payloads == [b"1", b"3"]


# Runs


def counted(monkeypatch: pytest.MonkeyPatch, scene: Scene, name: str) -> Mock:
    found = Mock(wraps=getattr(scene.broker, name))
    monkeypatch.setattr(scene.broker, name, found)
    return found


@pytest.mark.parametrize("keys", [None, [b"k"]])
def test_messages_for_many_topics_are_stored_in_one_step(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, keys: list[bytes | None] | None
) -> None:
    """Neither a step, nor an answer of the outbox, for each of them."""
    peer = NativePeer(scene)
    rows = counted(monkeypatch, scene, "accept_rows")
    single = counted(monkeypatch, scene, "accept")
    answers = Mock(wraps=peer.gateway._outbox.after)
    monkeypatch.setattr(type(peer.gateway._outbox), "after", answers)
    answers.side_effect = None

    peer.gateway.receive(
        b"".join(
            encode(Publish(n, f"t{n % 10}", [b"%d" % n], keys=keys))
            for n in range(1000)
        ),
        0.0,
    )

    assert (rows.call_count, single.call_count) == (1, 0)
    assert answers.call_count == 1


def test_messages_for_several_topics_are_answered_each_by_itself(scene: Scene) -> None:
    answers = NativePeer(scene).say(
        Publish(1, "a", [b"0"]),
        Publish(2, "b", [b"1", b"2"]),
        Publish(3, "a", [b"3"], ids=["mine"]),
        Publish(1 << 40, "a", [b"4", b"5"], ids=["x", None]),
        Publish(5, "$no", [b"6"]),
        Publish(7, "b", [b"8"]),
    )

    a = [event for batch in stored(scene, "a") for event in batch.events()]
    b = [event for batch in stored(scene, "b") for event in batch.events()]
    assert [one.payload for one in a] == [b"0", b"3", b"4", b"5"]
    assert [one.payload for one in b] == [b"1", b"2", b"8"]
    assert [one.id for one in a[1:3]] == ["mine", "x"]
    found = {one.seq: (one.offsets, one.ids) for one in only(Published, answers)}
    assert found == {
        1: (0, [a[0].id]),
        2: (0, [b[0].id]),
        3: (1, None),
        1 << 40: (2, found[1 << 40][1]),
        7: (2, [b[2].id]),
    }
    (mixed,) = [one for one in only(Published, answers) if one.seq == 1 << 40]
    assert Offsets.of(mixed, 2, ["x", None]).ids() == ["x", a[3].id]
    refused = [(one.seq, one.error) for one in only(RequestRefused, answers)]
    assert refused == [(5, "ReservedName")]
    assert [getattr(one, "seq", 0) for one in answers] == [1, 2, 3, 1 << 40, 5, 7]


def test_an_id_that_cannot_be_is_refused_and_no_other_message_of_a_run(
    scene: Scene,
) -> None:
    answers = NativePeer(scene).say(
        Publish(1, "a", [b"0"], ids=["x"]),
        Publish(2, "b", [b"1"], ids=[" "]),
        Publish(3, "a", [b"2"], ids=["y"]),
    )

    assert [one.seq for one in only(Published, answers)] == [1, 3]
    refused = [(one.seq, one.error) for one in only(RequestRefused, answers)]
    assert refused == [(2, "InvalidBatch")]
    assert not scene.broker.log.has_topic("b")


def test_a_run_that_a_failed_write_lost_is_a_problem_for_each(scene: Scene) -> None:
    peer = NativePeer(scene)
    scene.commits = False
    peer.say(*[Publish(n, f"t{n}", [b"x"]) for n in range(5)])

    scene.fail_commit()

    found = [(one.seq, one.error) for one in only(RequestRefused, peer.read())]
    assert found == [(n, "WriteFailed") for n in range(5)]


# Units: calls that share a message


def told(
    answers: list[ServerMessage],
) -> tuple[int | list[int], list[str] | None, list[tuple[int, str, str]]]:
    """Of units: offsets and ids of what is stored, and why the others are not."""
    (answer,) = only(Published, answers)
    said = [(one.unit, one.error, one.text) for one in answer.refused or ()]
    return answer.offsets, answer.ids, said


def test_units_are_stored_in_one_step_and_have_one_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = NativePeer(scene)
    accepts = counted(monkeypatch, scene, "accept")

    (answer,) = peer.say(
        Publish(1, "t", [b"%d" % n for n in range(100)], units=[1] * 100)
    )

    assert isinstance(answer, Published)
    assert (answer.seq, answer.offsets, answer.refused) == (1, 0, None)
    assert answer.ids == stored(scene)[0].ids()[:1]
    assert accepts.call_count == 1


def test_a_unit_that_does_not_fit_is_refused_and_no_other(scene: Scene) -> None:
    scene.broker.create_topic("t")
    schema = {"type": "integer"}
    scene.broker.registry.register("t", schema, type_="", at_ms=0, by="")

    said = NativePeer(scene).say(
        Publish(
            1,
            "t",
            [b"1", b"2", b"2.5", b"3", b"true"],
            ids=[None, None, None, "mine", None],
            units=[1, 2, 1, 1],
        )
    )

    offsets, ids, refused = told(said)
    events = [event for batch in stored(scene) for event in batch.events()]
    assert [one.payload for one in events] == [b"1", b"3"]
    assert offsets == [one.offset for one in events]
    assert ids is not None
    assert ids[0] == events[0].id
    assert [(unit, error) for unit, error, _ in refused] == [
        (1, "InvalidPayload"),
        (3, "InvalidPayload"),
    ]
    assert refused[0][2].endswith("(event 1 of the batch)")
    assert refused[1][2].endswith('not of type "integer"')


def test_a_unit_with_an_id_that_cannot_be_is_refused_and_no_other(scene: Scene) -> None:
    said = NativePeer(scene).say(
        Publish(
            1,
            "t",
            [b"a", b"b", b"c"],
            ids=["x", "\n", None],
            keys=[b"k"] * 3,
            units=[1] * 3,
        )
    )

    offsets, _, refused = told(said)
    assert offsets == [0, 1]
    assert [(unit, error) for unit, error, _ in refused] == [(1, "InvalidBatch")]
    events = [event for batch in stored(scene) for event in batch.events()]
    assert [(one.payload, one.key) for one in events] == [(b"a", b"k"), (b"c", b"k")]


def test_units_have_dedup_ids_that_store_once(scene: Scene) -> None:
    peer = NativePeer(scene)
    message = Publish(1, "t", [b"a", b"b"], dedup_ids=["x", "y"], units=[1, 1])

    first, again = peer.say(message), peer.say(message)

    assert first == again == [Published(1, [0, 1])]
    bad = Publish(2, "t", [b"a", b"b", b"c"], dedup_ids=["x", " ", "z"], units=[1] * 3)
    assert told(peer.say(bad))[:2] == ([0, 2], None)


def test_units_that_a_failed_write_lost_are_one_problem(scene: Scene) -> None:
    peer = NativePeer(scene)
    scene.commits = False
    peer.say(Publish(1, "t", [b"a", b"b"], units=[1, 1]))

    scene.fail_commit()

    (refused,) = only(RequestRefused, peer.read())
    assert (refused.seq, refused.error) == (1, "WriteFailed")


def test_units_of_which_some_are_lost_are_told_apart(tmp_path: Path) -> None:
    rules = Rules(log=LogOptions(group_bytes=4096, max_event_bytes=1000))
    scene = Scene(tmp_path, rules)
    peer = NativePeer(scene)
    scene.commits = False
    payloads = [bytes([97 + at]) * 900 for at in range(8)]
    payloads[5] = b"!" * 2000

    got = peer.say(Publish(1, "t", payloads, units=[1] * 8))
    assert got == []
    scene.fail_commit()

    offsets, ids, refused = told(peer.read())
    events = [event for batch in stored(scene) for event in batch.events()]
    assert offsets == [one.offset for one in events]
    assert ids == [one.id for one in events]
    lost = "WriteFailed"
    errors = {5: "InvalidBatch"}
    assert [(unit, error) for unit, error, _ in refused] == [
        (unit, errors.get(unit, lost)) for unit in range(len(events), 8)
    ]
    assert events
    scene.close()


def test_units_are_refused_together_where_their_topic_is(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "in/#")))
    anna = NativePeer(scene, Hello("anna", "pw", ""))

    (answer,) = only(
        RequestRefused, anna.say(Publish(1, "out", [b"a", b"b"], units=[1, 1]))
    )

    assert (answer.seq, answer.error) == (1, "NotAllowed")
    scene.close()


# Finishing


def consumer(scene: Scene, name: str = "shop") -> NativePeer:
    """A peer that has the three events of ``t`` in flight, on channel 1."""
    peer = NativePeer(scene, Hello(None, None, name))
    peer.say(Publish(1, "t", [b"0", b"1", b"2"]))
    peer.say(Subscribe(2, "t", "ann", "earliest"))
    assert peer.read() == []
    return peer


def test_finish_is_answered_when_all_of_it_is_durable(scene: Scene) -> None:
    peer = consumer(scene)
    scene.commits = False

    publishes = [
        Publish(0, "out", [b"a"], parents=["p"]),
        Publish(0, "more", [b"b"]),
        Publish(0, "out", [b"c"], keys=[b"k"]),
    ]
    assert peer.say(Finish(3, 1, [0, 2], publishes)) == []
    scene.commit()

    assert only(Answer, peer.read()) == [Answer(3, True)]
    events = [event for batch in stored(scene, "out") for event in batch.events()]
    assert [(one.payload, one.parent, one.key) for one in events] == [
        (b"a", "p", None),
        (b"c", None, b"k"),
    ]
    assert {one.producer for one in events} == {"ann"}
    owed = scene.broker.subscription("ann", "t").owed
    assert [offset for offset in range(3) if offset in owed] == [1]


@pytest.mark.parametrize(
    ("channel", "offsets"), [(1, [7]), (1, [0, 7]), (9, [0]), (0, [])]
)
def test_finish_of_what_is_not_there_publishes_nothing(
    scene: Scene, channel: int, offsets: list[int]
) -> None:
    peer = consumer(scene)

    said = peer.say(Finish(3, channel, offsets, [Publish(0, "out", [b"a"])]))

    assert said == [Answer(3, False)]
    assert not scene.broker.log.has_topic("out")


def test_finish_twice_publishes_once(scene: Scene) -> None:
    peer = consumer(scene)
    message = Finish(3, 1, [0], [Publish(0, "out", [b"a"])])

    assert peer.say(message, message) == [Answer(3, True), Answer(3, False)]

    assert [one.payloads() for one in stored(scene, "out")] == [[b"a"]]


@pytest.mark.parametrize(
    "bad",
    [
        Publish(0, "$errors", [b"a"]),
        Publish(0, "out", [b"a"], dedup_ids=["x"]),
        Publish(0, "out", [b"a"], ids=[" "]),
        Publish(0, "out", [b"a"], priorities=[256]),
        Publish(0, "more", []),
    ],
)
def test_finish_that_is_refused_changes_nothing(scene: Scene, bad: Publish) -> None:
    peer = consumer(scene)

    said = peer.say(Finish(3, 1, [0], [Publish(0, "out", [b"good"]), bad]))

    assert [(one.seq, bool(one.text)) for one in only(RequestRefused, said)] == [
        (3, True)
    ]
    assert not scene.broker.log.has_topic("out")
    assert peer.say(Finish(4, 1, [0], [])) == [Answer(4, True)]


def test_a_finish_that_a_failed_write_lost_comes_again(scene: Scene) -> None:
    peer = consumer(scene)
    scene.commits = False
    peer.say(Finish(3, 1, [0], [Publish(0, "out", [b"a"])]))

    scene.fail_commit()
    said = peer.read()

    assert [(one.seq, one.error) for one in only(RequestRefused, said)] == [
        (3, "WriteFailed")
    ]
    scene.commits = True
    scene.commit()
    again = [*said, *peer.say(Finish(4, 1, [1], []))]
    assert [one.offsets for one in only(Events, again)] == [[0]]


def test_a_user_with_rules_publishes_where_they_say(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "in/#")))
    anna = NativePeer(scene, Hello("anna", "pw", ""))

    got = anna.say(
        Publish(1, "out", [b"a"]),
        Publish(2, "out", [b"a"]),
        Publish(3, "in/a", [b"a"]),
        Publish(4, "in/a", [b"b"]),
        Publish(5, "out", [b"a"], dedup_ids=["x"]),
        Publish(6, "in/a", [b"c"], keys=[b"k"]),
    )

    problems = only(RequestRefused, got)
    assert [(one.seq, one.error) for one in problems] == [
        (1, "NotAllowed"),
        (2, "NotAllowed"),
        (5, "NotAllowed"),
    ]
    assert {one.text for one in problems} == {"user anna may not publish to out"}
    assert [one.seq for one in only(Published, got)] == [3, 4, 6]
    assert scene.broker.log.topics() == ["in/a"]
    scene.close()


def test_what_comes_of_an_event_is_published_where_the_rules_say(
    tmp_path: Path,
) -> None:
    rules = limited(Rule("subscribe", "t"), Rule("publish", "in/#"))
    scene = Scene(tmp_path, rules)
    scene.broker.publish("t", Columns([b"a", b"b"], 0))
    anna = NativePeer(scene, Hello("anna", "pw", ""))
    anna.say(Subscribe(1, "t", "me", start="earliest"))

    refused = anna.say(Finish(2, 1, [0], [Publish(0, "out", [b"x"])]))
    finished = anna.say(Finish(3, 1, [0], [Publish(0, "in/a", [b"x"])]))

    assert [one.error for one in only(RequestRefused, refused)] == ["NotAllowed"]
    assert only(Answer, finished) == [Answer(3, True)]
    assert scene.broker.log.topics() == ["in/a", "t"]
    scene.close()


def test_what_a_full_group_stored_is_not_lost_with_the_next_one(tmp_path: Path) -> None:
    rules = Rules(log=LogOptions(group_bytes=4096, max_event_bytes=1000))
    scene = Scene(tmp_path, rules)
    peer = NativePeer(scene)
    scene.commits = False
    payloads = [bytes([97 + at]) * 900 for at in range(8)]
    payloads[5] = b"!" * 2000

    got = peer.say(*[Publish(n, "t", [one]) for n, one in enumerate(payloads)])
    scene.fail_commit()
    got += peer.read()

    told = [one.error if isinstance(one, RequestRefused) else "" for one in got]
    lost = "WriteFailed"
    assert told == [""] * 4 + [lost, "InvalidBatch", lost, lost]
    assert sum(len(batch) for batch in stored(scene)) == 4
    scene.close()
