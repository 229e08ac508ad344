"""The conversations are in tests/data/jsonq; here is what they cannot show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.gateway.options import JsonOptions
from penstock.log import Columns
from penstock.model.policy import Policy
from tests.transcripts import byte_by_byte, play, transcripts, whole
from tests.unit.gateway.scene import Peer, Rules, Scene, limited

PLEASE, IN = "Please login!", "Succesfully logged in!"
PUB_1 = '{"msg":1,"msgId":1,"topic":"t","type":"PUB"}'
PUB_2 = '{"msg":2,"msgId":1000001,"topic":"t","type":"PUB"}'
PUBREL_1 = '{"msgId":1,"type":"PUBREL"}'


def packet(kind: str, topic: str = "t", msg_id: int | None = None) -> str:
    number = "" if msg_id is None else f',"msgId":{msg_id}'
    return f'{{"type":"{kind}","topic":"{topic}"{number}}}'


def log_in(scene: Scene, user: str = "anna", *lines: str) -> Peer:
    peer = scene.connect("consumer")
    peer.say(f"log {user}", *lines)
    return peer


def publish(scene: Scene, *payloads: int, topic: str = "t") -> None:
    """Publish over the line gateway: the events are the same for everybody."""
    writer = scene.connect("line")
    writer.say(*[f'pub {topic} {{"msg":{payload}}}' for payload in payloads])
    writer.disconnect()


@pytest.mark.parametrize("cut", [whole, byte_by_byte])
@pytest.mark.parametrize("path", transcripts("jsonq"), ids=lambda path: path.stem)
def test_conversation_is_as_written(
    path: Path, tmp_path: Path, cut: Callable[[bytes], list[bytes]]
) -> None:
    play(path, tmp_path, cut)


# Many lines in one read


def test_lines_behind_a_login_count_in_the_same_read(scene: Scene) -> None:
    peer = scene.connect("consumer")

    assert peer.say("hi", "log anna", packet("SUB"), "rubbish") == [
        PLEASE,
        PLEASE,
        IN,
        "OK",
        "INVALID JSON",
    ]


def test_lines_behind_a_password_wait_for_its_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "secret"}))
    peer = scene.connect("consumer")

    said = peer.say("log anna x", "log anna", "log anna secret", packet("SUB"))

    assert said == [PLEASE, PLEASE, PLEASE, IN, "OK"]
    scene.close()


def test_lines_behind_the_last_wrong_login_count_for_nothing(scene: Scene) -> None:
    peer = scene.connect("consumer")

    said = peer.say(*["x"] * 5, "log anna", packet("SUB"))

    assert said == [*[PLEASE] * 5, 'ERROR "Unknown login error"']
    assert peer.closed
    assert scene.connect("consumer").say("log anna") == [PLEASE, IN]


def test_a_handshake_in_one_read_is_answered_in_order(scene: Scene) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    publish(scene, 1, 2)
    assert anna.read()[-1] == PUB_1

    said = anna.say(packet("PUBREC", msg_id=1), packet("PUBCOMP", msg_id=1))

    assert said == ["OK", PUBREL_1, "OK", PUB_2]


# Junk


@pytest.mark.parametrize(
    "line", [b"\xff\n", b"\0\n", b"[" * 5000 + b"\n", b"{\xff}\r\n"]
)
def test_junk_is_a_dead_letter_and_the_connection_goes_on(
    scene: Scene, line: bytes
) -> None:
    anna = log_in(scene)
    anna.read()

    anna.send(line)

    assert anna.read() == ["INVALID JSON"]
    assert scene.broker.log.topic("deadLetterChan").next_offset == 1
    assert anna.say(packet("SUB")) == ["OK"]


@pytest.mark.parametrize(
    "line", [b"\xff\n", b"\0\n", b"log \xff\n", b"log a\0b\n", b"x" * 60 + b"\n"]
)
def test_junk_instead_of_a_login_is_a_wrong_login(tmp_path: Path, line: bytes) -> None:
    scene = Scene(tmp_path, Rules(json=JsonOptions(max_line_bytes=60)))
    peer = scene.connect("consumer")
    peer.read()

    peer.send(line)

    assert peer.read() == [PLEASE]
    assert not scene.broker.log.has_topic("deadLetterChan")
    scene.close()


def test_a_name_or_topic_that_cannot_be_is_an_error(scene: Scene) -> None:
    anna = log_in(scene)
    anna.read()

    assert anna.say(packet("SUB", "$x")) == [
        'ERROR "name $x is reserved: names that begin with $ are Penstock\'s"'
    ]
    assert anna.say(packet("SUB", "")) == ["ERROR \"topic name '' is empty\""]


def test_a_number_beyond_all_bounds_is_an_unknown_message(scene: Scene) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    anna.read()

    said = anna.say(packet("PUBREC", msg_id=10**18), packet("PUBCOMP", msg_id=-(2**63)))

    assert said == ["UNKNOWN MESSAGE"] * 2


def test_a_login_leaves_alone_what_the_name_has_at_another_gateway(
    scene: Scene,
) -> None:
    publish(scene, 1)
    line = scene.connect("line")
    line.say("as anna", "sub t")
    anna = scene.connect("consumer")

    assert anna.say("log anna") == [PLEASE, IN]
    assert anna.say(packet("SUB")) == [
        (
            'ERROR "subscription of anna to t gets events by priority, '
            'not as they were published"'
        )
    ]
    publish(scene, 2)
    assert len(line.read()) == 1


def test_a_line_that_is_too_long_is_invalid_and_the_next_one_counts(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, Rules(json=JsonOptions(max_line_bytes=60)))
    anna = log_in(scene)

    assert anna.say("x" * 70, packet("SUB")) == ["INVALID JSON", "OK"]
    assert scene.broker.log.topic("deadLetterChan").next_offset == 1
    scene.close()


def test_nobody_can_take_the_name_of_a_temporary_subscriber(scene: Scene) -> None:
    publish(scene, 1)
    scene.connect("line").say("sub t")
    (subscription,) = scene.broker.subscriptions

    peer = scene.connect("consumer")

    assert peer.say(f"log {subscription.subscriber}") == [PLEASE, PLEASE]


# Half lines


def test_a_half_line_at_the_end_counts_after_a_login(scene: Scene) -> None:
    anna = log_in(scene)
    anna.send(packet("SUB").encode())
    anna.read()

    anna.end()

    assert anna.read() == ["OK"]
    assert anna.closed


def test_a_half_login_is_none(scene: Scene) -> None:
    peer = scene.connect("consumer")
    peer.send(b"log anna")

    peer.end()

    assert peer.read() == [PLEASE]
    assert peer.closed
    assert scene.connect("consumer").say("log anna") == [PLEASE, IN]


# Promises


def test_pubrel_leaves_when_the_pubrec_is_durable(scene: Scene) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    publish(scene, 1)
    anna.read()
    scene.commits = False

    assert anna.say(packet("PUBREC", msg_id=1)) == []
    scene.fail_commit()
    assert anna.read() == []
    scene.commit()

    assert anna.read() == ["OK", PUBREL_1]


def test_a_message_that_is_owed_anew_does_not_overtake_its_last_pubrel(
    scene: Scene,
) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    publish(scene, 1)
    anna.say(packet("PUBREC", msg_id=1))
    (one,) = scene.broker.subscriptions
    scene.commits = False
    publish(scene, 2, topic="other")
    while one.owed:  # until that counts as received
        scene.advance(10)

    one.add_back(0, 0)
    scene.broker.wake(one)
    scene.pump()

    assert anna.read() == []
    scene.commit()
    said = anna.read()
    assert PUBREL_1 in said
    assert said.index(PUB_1) == len(said) - 1


def test_ok_means_that_a_subscription_is_durable(scene: Scene) -> None:
    anna = log_in(scene)
    anna.read()
    scene.commits = False

    assert anna.say(packet("SUB")) == []
    scene.commit()
    assert anna.read() == ["OK"]
    assert anna.say(packet("UNSUB")) == []
    scene.commit()

    assert anna.read() == ["OK"]


def test_subscription_to_a_topic_that_could_not_be_made_is_an_error(
    scene: Scene,
) -> None:
    peer = log_in(scene)
    scene.fail_commit()

    (answer,) = peer.say(packet("SUB"))

    assert answer.startswith('ERROR "not stored')
    assert peer.say(packet("SUB")) == ["OK"]
    publish(scene, 1)
    assert peer.read() == [PUB_1.replace('"msgId":1', '"msgId":2')]


def test_the_next_message_follows_the_ok_of_a_durable_pubcomp(scene: Scene) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    publish(scene, 1, 2)
    anna.say(packet("PUBREC", msg_id=1))
    scene.commits = False

    assert anna.say(packet("PUBCOMP", msg_id=1)) == []
    scene.commit()

    assert anna.read() == ["OK", PUB_2]


# The rules of a delivery


def test_counts_and_intervals_are_settings(tmp_path: Path) -> None:
    options = JsonOptions(
        pub_tries=2, pub_interval_s=1.0, pubrel_tries=3, pubrel_interval_s=2.0
    )
    scene = Scene(tmp_path, Rules(json=options))
    log_in(scene, "anna", packet("SUB"))

    (subscription,) = scene.broker.subscriptions

    assert subscription.policy == Policy(
        order="log",
        window=1,
        qos=2,
        ack_timeout_s=1.0,
        tries=2,
        exhausted="suspend",
        release_tries=3,
        release_interval_s=2.0,
    )
    scene.close()


def test_silence_in_one_topic_does_not_end_the_others(scene: Scene) -> None:
    anna = log_in(scene, "anna", packet("SUB"), packet("SUB", "u"))
    publish(scene, 1)
    for _ in range(5):
        scene.advance(10)
    anna.read()

    publish(scene, 2)
    publish(scene, 7, topic="u")

    assert anna.read() == ['{"msg":7,"msgId":2,"topic":"u","type":"PUB"}']


def test_a_message_that_was_taken_by_retention_is_not_tried_again(
    scene: Scene,
) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    publish(scene, 1)
    publish(scene, 2)
    assert anna.read()[-1] == PUB_1
    scene.broker.log.trim("t", 1)
    scene.broker.pages.forget("t")

    scene.advance(10)

    assert anna.read() == [PUB_2]


def test_unsubscribing_from_nothing_is_ok(scene: Scene) -> None:
    anna = log_in(scene)
    anna.read()

    assert anna.say(packet("UNSUB", "nowhere")) == ["OK"]
    assert not scene.broker.log.has_topic("nowhere")


def test_nothing_is_said_of_a_topic_that_is_gone(scene: Scene) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    publish(scene, 1)
    anna.read()

    scene.broker.delete_topic("t")

    scene.commit()
    scene.pump()

    assert anna.say(packet("PUBREC", msg_id=1)) == ["UNKNOWN MESSAGE"]
    assert anna.say(packet("SUB")) == ["OK"]


@pytest.mark.slow
def test_a_login_does_not_resume_what_was_unsubscribed_meanwhile(scene: Scene) -> None:
    anna = log_in(scene, "anna", packet("SUB"))
    publish(scene, 1)
    for _ in range(5):
        scene.advance(10)
    anna.read()

    assert anna.say(packet("UNSUB")) == ["OK"]
    anna.disconnect()

    assert scene.connect("consumer").say("log anna") == [PLEASE, IN]


# What a user may do


def test_a_user_with_rules_subscribes_where_they_say(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "t")))
    peer = scene.connect("consumer")

    said = peer.say("log anna pw", packet("SUB"), packet("SUB", "out"))

    refused = 'ERROR "user anna may not subscribe to out"'
    assert said == [PLEASE, IN, "OK", refused]
    assert scene.broker.log.topics() == ["t"]
    scene.close()


def test_a_login_resumes_only_what_is_still_allowed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "#")))
    before = scene.connect("consumer")
    before.say("log anna pw", packet("SUB"), packet("SUB", "u"))
    before.disconnect()
    scene.rules.grants = limited(Rule("subscribe", "u")).grants
    for topic in ("t", "u"):
        scene.broker.publish(topic, Columns([b"1"], 0))

    said = scene.connect("consumer").say("log anna pw")

    assert said[:2] == [PLEASE, IN]
    assert ['"topic":"u"' in one for one in said[2:]] == [True]
    scene.close()


def test_a_rule_may_name_the_subscribers_it_is_good_for(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "t", ("anna", "job-*"))))
    peer = scene.connect("consumer")
    assert peer.say("log anna pw", packet("SUB"))[-1] == "OK"
    peer.disconnect()

    scene.rules.grants = limited(Rule("subscribe", "t", ("job-*",))).grants
    said = scene.connect("consumer").say("log anna pw", packet("SUB"), packet("UNSUB"))

    refused = (
        'ERROR "user anna may not subscribe as anna to t: '
        "it needs the rule 'anna may subscribe t as anna'\""
    )
    assert said == [PLEASE, IN, refused, refused]
    scene.close()
