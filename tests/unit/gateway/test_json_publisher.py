"""More conversations with publishers are in tests/data/jsonq."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.broker.options import BrokerOptions
from penstock.delivery.letters import TOPIC as LETTERS
from penstock.delivery.letters import decode_letter
from penstock.gateway.options import JsonOptions
from tests.unit.gateway.scene import Peer, Rules, Scene, limited
from tests.unit.log.faults import payloads

PUB = '{"type":"PUB","topic":"t","msg":1}'
LOST = 'ERROR "not stored: the write failed, send it again"'


def pubrel(msg_id: int) -> str:
    return f'{{"type":"PUBREL","msgId":{msg_id}}}'


def pubrec(msg_id: int) -> str:
    return f'{{"msgId":{msg_id},"type":"PUBREC"}}'


def pubcomp(msg_id: int) -> str:
    return f'{{"msgId":{msg_id},"type":"PUBCOMP"}}'


@pytest.fixture
def press(scene: Scene) -> Peer:
    return scene.connect("publisher")


def stored(scene: Scene) -> list[bytes]:
    return payloads(scene.broker.log, "t")


def test_a_read_of_many_lines_is_answered_in_their_order(
    scene: Scene, press: Peer
) -> None:
    said = press.say(PUB, "x", PUB, pubrel(2), pubrel(1), pubrel(1), "{}")

    assert said == [
        pubrec(1),
        "INVALID JSON",
        pubrec(2),
        pubcomp(2),
        pubcomp(1),
        pubcomp(1),
        "UNKNOWN COMMAND",
    ]
    assert stored(scene) == [b"1", b"1"]


def test_ids_are_unique_however_many_wait(scene: Scene, press: Peer) -> None:
    said = press.say(*[PUB] * 50)

    assert said == [pubrec(number) for number in range(1, 51)]
    assert press.say(*map(pubrel, range(50, 0, -1)))[0] == pubcomp(50)
    assert len(stored(scene)) == 50


def test_a_message_is_stored_as_it_was_written(scene: Scene, press: Peer) -> None:
    press.say('{"msg": {"a" : [1.50, "\\u00e9"]} ,"topic":"t","type":"PUB"}', pubrel(1))

    assert stored(scene) == [b'{"a" : [1.50, "\\u00e9"]}']


def test_pubrec_and_pubcomp_wait_for_the_commit(scene: Scene, press: Peer) -> None:
    scene.commits = False

    assert press.say(PUB) == []
    scene.commit()
    assert press.read() == [pubrec(1)]
    assert press.say(pubrel(1)) == []
    assert press.say(pubrel(1)) == []
    scene.commit()

    assert press.read() == [pubcomp(1), pubcomp(1)]
    assert stored(scene) == [b"1"]


def test_a_pub_whose_commit_failed_is_not_pending(scene: Scene, press: Peer) -> None:
    scene.commits = False
    press.say(PUB)

    scene.fail_commit()

    assert press.read() == [LOST]
    assert len(scene.broker.pending) == 0
    scene.commits = True
    assert press.say(PUB) == [pubrec(2)]


def test_a_pubrel_whose_commit_failed_can_be_repeated(
    scene: Scene, press: Peer
) -> None:
    press.say(PUB)
    scene.commits = False
    press.say(pubrel(1), pubrel(1))

    scene.fail_commit()

    assert press.read() == [LOST, LOST]
    scene.commits = True
    assert press.say(pubrel(1)) == [pubcomp(1)]
    assert stored(scene) == [b"1"]


@pytest.mark.parametrize("kill", [True, False])
def test_a_repeated_pubrel_publishes_once_across_a_restart(
    scene: Scene, press: Peer, *, kill: bool
) -> None:
    press.say(PUB, pubrel(1))

    scene.restart(kill=kill)
    again = scene.connect("publisher")

    assert again.say(pubrel(1), PUB) == [pubcomp(1), pubrec(2)]
    assert stored(scene) == [b"1"]


def test_a_message_that_expires_is_a_dead_letter(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(pending_ttl_s=60.0)))
    scene.connect("publisher").say(PUB)

    scene.advance(60.0)
    assert len(scene.broker.pending) == 1
    scene.advance(0.125)

    assert len(scene.broker.pending) == 0
    (letter,) = map(decode_letter, payloads(scene.broker.log, LETTERS))
    assert (letter.gateway, letter.reason, letter.raw) == (
        "json",
        "the PUBREL of message 1 never came",
        b"1",
    )
    scene.close()


def test_bytes_of_pending_messages_have_a_limit(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_pending_bytes=2)))
    press = scene.connect("publisher")

    said = press.say(PUB, PUB, PUB, pubrel(1), PUB)

    limit = "there are 2 bytes of pending messages, the limit of max_pending_bytes"
    assert said == [pubrec(1), pubrec(2), f'ERROR "{limit}"', pubcomp(1), pubrec(3)]
    scene.close()


def test_a_release_that_is_refused_stays_pending(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_topics=1)))
    scene.broker.create_topic("other")
    press = scene.connect("publisher")

    said = press.say(PUB, pubrel(1))

    assert said == [
        pubrec(1),
        'ERROR "there are 1 topics, the limit of max_topics"',
    ]
    scene.broker.delete_topic("other")
    scene.commit()
    assert press.say(pubrel(1)) == [pubcomp(1)]
    scene.close()


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"PUBREL","msgId":"1"}',
        '{"type":"PUBREL","msgId":1.0}',
        '{"type":"PUBREL"}',
        '{"type":"PUB","topic":7,"msg":1}',
        '{"type":"pub","topic":"t","msg":1}',
        '["PUB"]',
        "5",
        '{"type":"SUB","topic":"t"}',
    ],
)
def test_other_json_is_unknown_and_does_nothing(
    scene: Scene, press: Peer, line: str
) -> None:
    press.say(PUB)

    assert press.say(line) == ["UNKNOWN COMMAND"]
    assert len(scene.broker.pending) == 1
    assert not scene.broker.log.has_topic("t")


@pytest.mark.parametrize("line", [b"\xff\n", b"\0\n", b"\r\n", b"[" * 5000 + b"\n"])
def test_junk_is_invalid_and_the_connection_goes_on(press: Peer, line: bytes) -> None:
    press.send(line)

    assert press.read() == ["INVALID JSON"]
    assert press.say(PUB) == [pubrec(1)]


def test_a_half_line_at_the_end_counts(press: Peer) -> None:
    press.send(PUB.encode())

    press.end()

    assert press.read() == [pubrec(1)]
    assert press.closed


def test_a_half_line_of_somebody_who_has_not_logged_in_counts_for_nothing(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "secret"}))
    press = scene.connect("publisher")
    press.send(PUB.encode())

    press.end()

    assert press.read() == ["Please login!"]
    assert press.closed
    scene.close()


def test_lines_behind_a_login_wait_for_its_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "secret"}))
    press = scene.connect("publisher")

    said = press.say("log anna wrong", PUB, "log anna secret", PUB)

    please = "Please login!"
    assert said == [please] * 3 + ["Succesfully logged in!", pubrec(1)]
    scene.close()


def test_lines_behind_the_last_wrong_login_count_for_nothing(tmp_path: Path) -> None:
    rules = Rules(
        passwords={"anna": "secret"},
        json=JsonOptions(login_attempts=1, max_line_bytes=60),
    )
    scene = Scene(tmp_path, rules)
    press = scene.connect("publisher")

    said = press.say("x" * 70, "log anna secret", PUB)

    assert said == ["Please login!", 'ERROR "Unknown login error"']
    assert press.closed
    scene.close()


def test_pending_messages_outlive_their_connection(scene: Scene, press: Peer) -> None:
    press.say(PUB)
    press.disconnect()

    assert scene.connect("publisher").say(pubrel(1)) == [pubcomp(1)]
    assert stored(scene) == [b"1"]


# Schemas


def strings_only(scene: Scene) -> None:
    if not scene.broker.log.has_topic("t"):
        scene.broker.create_topic("t")
    schema = {"type": "string"}
    scene.broker.registry.register("t", schema, type_="", at_ms=0, by="")
    scene.commit()


UNFIT = (
    "payload does not fit version 1 of the schema of topic t: $: "
    '1 is not of type \\"string\\"'
)


def test_what_does_not_fit_the_schema_is_refused_at_its_pub(
    scene: Scene, press: Peer
) -> None:
    strings_only(scene)

    assert press.say(PUB) == [f'ERROR "{UNFIT}"']
    assert len(scene.broker.pending) == 0
    good = PUB.replace("1", '"x"')
    assert press.say(good, pubrel(1)) == [pubrec(1), pubcomp(1)]


def test_what_no_longer_fits_at_its_pubrel_is_a_dead_letter(
    scene: Scene, press: Peer
) -> None:
    press.say(PUB)
    strings_only(scene)

    said = press.say(pubrel(1))

    given_up = "message 1 was given up and is a dead letter"
    assert said == [f'ERROR "{given_up}: {UNFIT}"']
    (letter,) = map(decode_letter, payloads(scene.broker.log, LETTERS))
    assert (letter.topic, letter.raw) == ("t", b"1")
    assert press.say(pubrel(1)) == [f'ERROR "{given_up}"']
    assert stored(scene) == []


def test_a_refusal_at_the_pubrel_waits_for_its_letter(
    scene: Scene, press: Peer
) -> None:
    press.say(PUB)
    strings_only(scene)
    scene.commits = False
    assert press.say(pubrel(1)) == []

    scene.fail_commit()

    assert press.read() == [LOST]
    scene.commits = True
    (said,) = press.say(pubrel(1))
    assert "is a dead letter" in said


def test_a_user_with_rules_publishes_where_they_say(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "in/+")))
    anna = scene.connect("publisher")

    said = anna.say("log anna pw", PUB, PUB.replace('"t"', '"in/a"'), pubrel(1))

    please, welcome = "Please login!", "Succesfully logged in!"
    refused = 'ERROR "user anna may not publish to t"'
    assert said == [please, welcome, refused, pubrec(1), pubcomp(1)]
    assert scene.broker.log.topics() == ["in/a"]
    scene.close()


def test_what_others_have_begun_to_publish_is_not_released(tmp_path: Path) -> None:
    rules = limited(Rule("publish", "in/+"))
    rules.passwords["bert"] = "pw"
    scene = Scene(tmp_path, rules)
    scene.connect("publisher").say("log bert pw", PUB)

    anna, bert = scene.connect("publisher"), scene.connect("publisher")
    refused = anna.say("log anna pw", pubrel(1))[-1]
    released = bert.say("log bert pw", pubrel(1))[-1]

    assert refused == 'ERROR "user anna may not publish to t"'
    assert released == pubcomp(1)
    assert stored(scene) == [b"1"]
    scene.close()
