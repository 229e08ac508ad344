from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from penstock.broker.options import BrokerOptions
from penstock.log import Log, LogOptions
from tests.unit.gateway.scene import Peer, Rules, Scene
from tests.unit.log.faults import batches


@pytest.fixture
def writer(scene: Scene) -> Peer:
    peer = scene.connect("line")
    peer.say("confirm on")
    return peer


def test_a_run_of_one_topic_is_one_frame(scene: Scene, writer: Peer) -> None:
    scene.commits = False
    writer.say(*[f'pub t {{"id":"{number}","msg":{number}}}' for number in range(100)])
    scene.commit()

    assert writer.read() == [f"published t {number} {number}" for number in range(100)]
    (batch,) = batches(scene.broker.log, "t")
    assert batch.payloads() == [b"%d" % number for number in range(100)]


def test_a_run_with_generated_ids_says_each_of_them(scene: Scene, writer: Peer) -> None:
    said = writer.say("pub t {}", 'pub t {"id":"x"}', "pub t {}")

    (batch,) = batches(scene.broker.log, "t")
    assert said == [
        f"published t {id_} {offset}" for offset, id_ in enumerate(batch.ids())
    ]
    assert len(set(batch.ids())) == 3


def test_events_of_several_topics_are_answered_in_the_order_of_the_lines(
    writer: Peer,
) -> None:
    said = writer.say(
        'pub a {"id":"1"}', 'pub b {"id":"2"}', 'pub a {"id":"3"}', "pub b {}"
    )

    assert said[:3] == ["published a 1 0", "published b 2 0", "published a 3 1"]
    assert said[3].startswith("published b ") and said[3].endswith(" 1")


def test_bad_events_between_good_ones_are_answered_in_their_place(
    scene: Scene, writer: Peer
) -> None:
    lines = [
        b'pub a {"id":"1"}',
        b'pub a {"id":null}',
        b'pub \xff {"id":"2"}',
        b'pub $a {"id":"3"}',
        b'pub a {"id":"4"}',
        b'pub b {"priority":256}',
    ]
    answers = [
        "published a 1 0",
        "error: id is null: must be a string or an integer",
        "error: topic is not valid UTF-8 (byte 0)",
        "error: name $a is reserved: names that begin with $ are Penstock's",
        "published a 4 1",
        "error: priority is 256: must be an integer from 0 to 255",
    ]

    writer.send(b"\n".join([*lines, b""]))

    assert writer.read() == answers
    assert not scene.broker.log.has_topic("b")


def test_without_confirm_only_what_is_bad_is_answered(
    scene: Scene, writer: Peer
) -> None:
    writer.say("confirm off")

    said = writer.say('pub a {"id":"1"}', "pub a {]", 'pub b {"id":"2"}')

    assert len(said) == 1
    assert said[0].startswith("error: not valid JSON: ")
    assert scene.broker.log.topic("b").next_offset == 1


def test_a_topic_of_bytes_that_are_no_text_is_refused_for_each_event(
    writer: Peer,
) -> None:
    writer.send(b"pub \xff {}\n" * 2)

    assert writer.read() == ["error: topic is not valid UTF-8 (byte 0)"] * 2


def test_a_topic_too_many_is_refused_for_each_event(tmp_path: Path) -> None:
    rules = Rules(broker=BrokerOptions(max_topics=1))
    scene = Scene(tmp_path, rules)
    writer = scene.connect("line")
    writer.say("confirm on", 'pub a {"id":"1"}')
    refused = "error: there are 1 topics, the limit of max_topics"

    assert writer.say("pub b {}", "pub b {}") == [refused] * 2
    assert writer.say("pub b {}", 'pub a {"id":"2"}', "pub c {}") == [
        refused,
        "published a 2 1",
        refused,
    ]
    scene.close()


def test_an_event_too_large_is_refused_and_harms_no_other(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(log=LogOptions(max_event_bytes=1024)))
    writer = scene.connect("line")
    writer.say("confirm on")
    big = f'pub a {{"id":"2","msg":"{"x" * 1024}"}}'

    said = writer.say('pub a {"id":"1"}', big)

    assert said[0] == "published a 1 0"
    assert said[1].startswith("error: ")
    assert "1024" in said[1]
    assert writer.say('pub a {"id":"3"}') == ["published a 3 1"]
    scene.close()


def test_other_fields_and_priorities_are_stored(scene: Scene, writer: Peer) -> None:
    writer.say('pub t {"id":"1","x":[1]}', 'pub t {"id":"2","priority":7}')

    (batch,) = batches(scene.broker.log, "t")
    assert list(batch.headers()) == [{"fields": '{"x":[1]}'}, {}]
    assert list(batch.priorities()) == [0, 7]


# Schemas


def integers_only(scene: Scene, topic: str = "t") -> None:
    scene.broker.create_topic(topic)
    schema = {"type": "integer"}
    scene.broker.registry.register(topic, schema, type_="", at_ms=0, by="")
    scene.commit()


UNFIT = (
    "error: payload does not fit version 1 of the schema of topic t: $: "
    '"x" is not of type "integer"'
)


def test_of_a_run_only_what_does_not_fit_the_schema_is_refused(
    scene: Scene, writer: Peer
) -> None:
    integers_only(scene)

    said = writer.say(
        'pub t {"id":"1","msg":1}',
        'pub t {"id":"2","msg":"x"}',
        'pub t {"id":"3","msg":3}',
    )

    assert said == ["published t 1 0", UNFIT, "published t 3 1"]
    assert writer.say('pub t {"id":"4","msg":"x"}') == [UNFIT]
    assert writer.say(*['pub t {"id":"5","msg":"x"}'] * 2) == [UNFIT] * 2
    assert writer.say('pub t {"id":"6","msg":6}') == ["published t 6 2"]


def test_of_several_topics_only_what_does_not_fit_is_refused(
    scene: Scene, writer: Peer
) -> None:
    integers_only(scene)

    said = writer.say(
        'pub t {"id":"1","msg":"x"}',
        'pub u {"id":"2","msg":"x"}',
        "pub t {]",
        'pub t {"id":"3","msg":3}',
    )

    assert said[:2] == [UNFIT, "published u 2 0"]
    assert said[2].startswith("error: not valid JSON")
    assert said[3] == "published t 3 0"


def test_without_confirm_what_does_not_fit_is_answered_at_once(
    scene: Scene, writer: Peer
) -> None:
    integers_only(scene)
    writer.say("confirm off")
    scene.commits = False

    said = writer.say('pub t {"msg":1}', 'pub t {"msg":"x"}')

    assert said == [UNFIT]
    scene.commit()
    assert scene.broker.log.topic("t").next_offset == 1


def test_a_group_that_fails_while_others_are_stored_confirms_nothing(
    scene: Scene, writer: Peer
) -> None:
    log = scene.broker.log
    assert isinstance(log, Log)
    log.options = dataclasses.replace(log.options, group_bytes=3000)
    integers_only(scene)  # so that the topics are gone through one by one
    scene.commits = False
    scene.files.fail("write", "journal")

    large = "x" * 2000
    lines = [f'pub {topic} {{"id":"1","msg":"{large}"}}' for topic in "abc"]
    said = writer.say('pub t {"msg":"x"}', *lines)
    scene.commit()
    said += writer.read()

    assert said[0] == UNFIT
    assert said[1].startswith("error: not stored")
    assert "failed" in said[2]  # it came when the group was full
    assert said[3] == "published c 1 0"
    assert [topic for topic in "abc" if log.has_topic(topic)] == ["c"]


def test_what_fits_is_lost_with_its_commit(scene: Scene, writer: Peer) -> None:
    integers_only(scene)
    scene.commits = False
    writer.say('pub t {"msg":1}', 'pub t {"msg":"x"}')

    scene.fail_commit()

    lost, unfit = writer.read()
    assert lost == "error: not stored: the write failed, publish it again"
    assert unfit.startswith("error: payload does not fit")


def test_what_a_full_group_stored_is_not_lost_with_the_next_one(tmp_path: Path) -> None:
    rules = Rules(log=LogOptions(group_bytes=4096, max_event_bytes=1000))
    scene = Scene(tmp_path, rules)
    writer = scene.connect("line")
    writer.say("confirm on")
    scene.commits = False
    texts = [letter * 900 for letter in "abcdefgh"]
    texts[5] = "!" * 2000

    writer.say(*(f'pub t {{"id":"{text[0]}","msg":"{text}"}}' for text in texts))
    scene.fail_commit()

    said = [line.split()[:2] for line in writer.read()]
    assert said == (
        [["published", "t"]] * 4
        + [["error:", "not"], ["error:", "payload"]]
        + [["error:", "not"]] * 2
    )
    scene.close()
