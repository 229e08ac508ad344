"""The conversations are in tests/data/line; here is what they cannot show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.delivery.consumer import Consumer
from penstock.gateway.line import LineGateway
from penstock.gateway.options import LineOptions
from penstock.log import Columns
from tests.transcripts import byte_by_byte, play, transcripts, whole
from tests.unit.gateway.scene import Peer, Rules, Scene, limited

ONE = '{"topic":"t","priority":0,"msg":null,"id":"1"}'
TWO = '{"topic":"t","priority":0,"msg":null,"id":"2"}'
SUBSCRIBED = "successfully subscribed to topic t"
SESSION = "acknowledged from current session"
LOST = "error: not stored: the write failed, publish it again"


def connect(scene: Scene, *lines: str) -> Peer:
    """A connection that has said these lines and read the answers."""
    peer = scene.connect("line")
    peer.say(*lines)
    return peer


@pytest.fixture
def writer(scene: Scene) -> Peer:
    """Publishes; topic ``t`` exists."""
    return connect(scene, 'pub t {"id":"0"}')


@pytest.mark.parametrize("cut", [whole, byte_by_byte])
@pytest.mark.parametrize("path", transcripts("line"), ids=lambda path: path.stem)
def test_conversation_is_as_written(
    path: Path, tmp_path: Path, cut: Callable[[bytes], list[bytes]]
) -> None:
    play(path, tmp_path, cut)


# Many lines in one read


def test_a_read_of_many_lines_is_answered_in_their_order(scene: Scene) -> None:
    peer = connect(scene)

    answers = peer.say(
        "confirm on",
        'pub t {"id":"1"}',
        'pub u {"id":"2"}',
        'pub t {"id":3.5}',
        'pub t {"id":"4"}',
        "nonsense",
        "sub t",
        'pub t {"id":"5"}',
        "ack t 5",
        "ack u 1",
    )

    assert answers == [
        "confirm on",
        "published t 1 0",
        "published u 2 0",
        "error: id is 3.5: must be a string or an integer",
        "published t 4 1",
        'error: unknown command: ["nonsense"]',
        SUBSCRIBED,
        '{"topic":"t","priority":0,"msg":null,"id":"5"}',
        "published t 5 2",
        "no_event_error: 5",  # when it was asked, nothing had been sent
        "error: not a topic u subscriber",
    ]


def test_a_run_of_acks_is_answered_as_one_and_followed_by_what_is_next(
    scene: Scene, writer: Peer
) -> None:
    reader = connect(scene, "window 2", "sub t")
    writer.say('pub t {"id":"1"}', 'pub t {"id":"2"}')
    assert reader.read() == [ONE, TWO]
    writer.say('pub t {"id":"3"}')

    answers = reader.say("ack t 1", "ack t 9", "ack t 2", "ack u 1")

    assert answers == [
        SESSION,
        "no_event_error: 9",
        SESSION,
        "error: not a topic u subscriber",
        '{"topic":"t","priority":0,"msg":null,"id":"3"}',
    ]


def test_acks_of_two_topics_in_one_read_ask_both_for_more(
    scene: Scene, writer: Peer
) -> None:
    writer.say('pub u {"id":"0"}')
    reader = connect(scene, "sub t", "sub u")
    writer.say('pub t {"id":"1"}', 'pub u {"id":"1"}')
    reader.read()
    writer.say('pub u {"id":"2"}')

    answers = reader.say("ack t 1", "ack u 1")

    assert answers == [
        SESSION,
        SESSION,
        "no available message",
        '{"topic":"u","priority":0,"msg":null,"id":"2"}',
    ]


def test_lines_behind_a_login_wait_for_its_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "secret"}))

    answers = connect(scene).say(
        "as anna wrong", "confirm on", "as anna secret", "confirm on", 'pub t {"id":1}'
    )

    assert answers == [
        "error: wrong password for anna",
        "error: log in first: as <name> <password>",
        "subscriber anna",
        "confirm on",
        "published t 1 0",
    ]
    scene.close()


def test_too_many_wrong_passwords_end_the_connection(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "secret"}))
    peer = connect(scene)

    answers = peer.say(*["as anna wrong"] * 300, "as anna secret")

    assert answers == ["error: wrong password for anna"] * 5
    assert peer.gateway.closing
    scene.close()


# Bytes that are no text


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"\0\n", b"error: unknown command: [<<0>>]\r\n"),
        (b"\xff\xfe\n", b"error: unknown command: [<<255, 254>>]\r\n"),
        (b"sub \xff\n", b"error: topic is not valid UTF-8 (byte 0)\r\n"),
        (b"unsub a\xff\n", b"error: topic is not valid UTF-8 (byte 1)\r\n"),
        (b"ack \xff 1\n", b"error: ack is not valid UTF-8\r\n"),
        (b"ack t \xff\n", b"error: ack is not valid UTF-8\r\n"),
        (b"as \xff\n", b"error: name is not valid UTF-8 (byte 0)\r\n"),
        (b"window \xff\n", b"error: window is not valid UTF-8 (byte 0)\r\n"),
        (
            b"window " + b"9" * 5000 + b"\n",
            b"error: window is %b: must be an integer from 1 to 100000\r\n"
            % (b"9" * 80),
        ),
        (
            "window ٣\n".encode(),
            "error: window is ٣: must be an integer from 1 to 100000\r\n".encode(),
        ),
        (b"pub \xff {}\n", b"error: topic is not valid UTF-8 (byte 0)\r\n"),
        (
            b'pub t {"msg":"\xff"}\n',
            b"error: not valid JSON: not UTF-8 (byte 8)\r\n",
        ),
        (
            b"pub a\0b {}\n",
            b"error: topic name 'a\\x00b' contains a NUL character\r\n",
        ),
        (
            b"sub a\0b\n",
            b"error: topic a\0b does not exist\r\n",
        ),
        (
            b"as a\0b\n",
            (
                b"error: subscriber name 'a\\x00b' contains characters that cannot be"
                b" printed\r\n"
            ),
        ),
        (b"\r\n\n", b'error: unknown command: [""]\r\n' * 2),
        (b"confirm on\r\r\n", b"confirm on\r\n"),
    ],
)
def test_junk_is_answered_and_the_connection_goes_on(
    scene: Scene, sent: bytes, answered: bytes
) -> None:
    peer = connect(scene)

    peer.send(sent)
    got, peer.got = peer.got, b""

    assert got == answered
    assert peer.say("confirm off") == ["confirm off"]
    assert not peer.gateway.closing


def test_a_name_that_is_too_long_is_refused(scene: Scene) -> None:
    (answer,) = connect(scene).say("as " + "x" * 257)

    assert answer.endswith("has 257 bytes, limit 256")


def test_nobody_can_take_the_name_of_a_temporary_subscriber(
    scene: Scene, writer: Peer
) -> None:
    connect(scene, "sub t")
    (subscription,) = scene.broker.subscriptions

    (answer,) = connect(scene).say(f"as {subscription.subscriber}")

    assert answer.startswith(f"error: name {subscription.subscriber} is reserved")


# Half lines


def test_a_half_line_at_the_end_is_carried_out_too(scene: Scene) -> None:
    peer = connect(scene, "confirm on")
    peer.send(b'pub t {"id":"1"}\npub t {"id":"2"}')
    assert peer.read() == ["published t 1 0"]

    peer.end()

    assert peer.read() == ["published t 2 1"]
    assert peer.closed


@pytest.mark.parametrize("rest", [b"", b" \r", b"x" * 41])
def test_nothing_and_what_is_too_long_is_no_half_line(
    tmp_path: Path, rest: bytes
) -> None:
    scene = Scene(tmp_path, Rules(line=LineOptions(max_line_bytes=40)))
    peer = connect(scene)
    peer.send(rest)

    peer.end()

    assert peer.read() == []
    assert peer.closed
    scene.close()


# A backlog

LONG = [f"{n:04}" * 1000 for n in range(300)]


@pytest.mark.parametrize(
    "events",
    [
        Columns([b"1"] * 300, headers=[{"trace": text} for text in LONG]),
        Columns([b"1"] * 300, keys=[text.encode() for text in LONG]),
        Columns([b"[\n%4000d]" % n for n in range(300)], priorities=[3] * 300),
    ],
    ids=["headers", "keys", "spaces, by priority"],
)
def test_all_of_a_backlog_comes_however_little_of_it_a_line_shows(
    scene: Scene, writer: Peer, events: Columns
) -> None:
    reader = connect(scene, "as anna", "window 1000", "sub t")

    scene.broker.publish("t", events)
    scene.pump()

    lines = reader.read()
    assert len(lines) == 300
    assert max(map(len, lines)) < 100


# Promises


def test_answers_wait_for_the_commit_and_those_behind_them_too(scene: Scene) -> None:
    peer = connect(scene, "confirm on")
    scene.commits = False

    peer.say('pub t {"id":"1"}', "nonsense", 'pub t {"id":"2"}')
    peer.end()
    assert (peer.read(), peer.closed) == ([], False)
    scene.commit()

    assert peer.read() == [
        "published t 1 0",
        'error: unknown command: ["nonsense"]',
        "published t 2 1",
    ]
    assert peer.closed


def test_a_failed_commit_is_an_error_for_every_event_of_it(scene: Scene) -> None:
    peer = connect(scene, "confirm on", 'pub t {"id":"0"}')
    scene.commits = False

    peer.say('pub t {"id":"1"}', 'pub t {"id":"2"}', "confirm on", 'pub u {"id":3}')
    scene.fail_commit()

    assert peer.read() == [LOST, LOST, "confirm on", LOST]
    scene.commits = True
    assert peer.say('pub t {"id":"4"}') == ["published t 4 1"]


def test_a_failed_commit_reaches_the_events_of_several_topics(scene: Scene) -> None:
    peer = connect(scene, "confirm on")
    scene.commits = False

    peer.say('pub t {"id":"1"}', 'pub u {"id":"2"}')
    scene.fail_commit()

    assert peer.read() == [LOST, LOST]


def test_the_ack_of_a_name_is_answered_when_it_is_durable(
    scene: Scene, writer: Peer
) -> None:
    reader = connect(scene, "as anna", "sub t")
    writer.say('pub t {"id":"1"}', 'pub t {"id":"2"}')
    assert reader.read() == [ONE]
    scene.commits = False

    assert reader.say("ack t 1") == []
    scene.fail_commit()
    assert reader.read() == []
    scene.commit()

    assert reader.read() == [SESSION, TWO]


def test_the_subscription_of_a_name_is_answered_when_it_is_durable(
    scene: Scene, writer: Peer
) -> None:
    reader = connect(scene, "as anna")
    scene.commits = False

    assert reader.say("sub t") == []
    scene.commit()
    assert reader.read() == [SUBSCRIBED]
    assert reader.say("unsub t") == []
    scene.commit()

    assert reader.read() == ["successfully unsubscribe from topic t"]


def test_the_ack_of_nobody_in_particular_waits_for_nothing(
    scene: Scene, writer: Peer
) -> None:
    reader = connect(scene, "sub t")
    writer.say('pub t {"id":"1"}', 'pub t {"id":"2"}')
    reader.read()
    scene.commits = False

    assert reader.say("ack t 1") == [SESSION, TWO]


def test_an_event_is_sent_to_nobody_before_it_is_durable(
    scene: Scene, writer: Peer
) -> None:
    reader = connect(scene, "sub t")
    scene.commits = False

    writer.say('pub t {"id":"1"}')
    assert reader.read() == []
    scene.fail_commit()
    assert reader.read() == []
    writer.say('pub t {"id":"2"}')
    scene.commit()

    assert reader.read() == [TWO]


# The end of things


def test_a_temporary_subscriber_ends_with_its_connection(
    scene: Scene, writer: Peer
) -> None:
    reader = connect(scene, "sub t")
    assert len(scene.broker.subscriptions) == 1

    reader.disconnect()

    assert len(scene.broker.subscriptions) == 0


def test_a_subscriber_hears_that_its_topic_is_gone(scene: Scene, writer: Peer) -> None:
    reader = connect(scene, "sub t")
    writer.say('pub t {"id":"1"}')
    reader.read()

    scene.broker.delete_topic("t")

    scene.commit()
    scene.pump()

    assert reader.read() == ["error: subscription to t ended: the topic was deleted"]
    assert reader.say("ack t 1") == ["error: not a topic t subscriber"]
    assert reader.say("sub t") == ["error: topic t does not exist"]


def test_a_topic_that_ends_under_an_unanswered_ack_sends_no_more(
    scene: Scene, writer: Peer
) -> None:
    reader = connect(scene, "as anna", "sub t")
    writer.say('pub t {"id":"1"}', 'pub t {"id":"2"}')
    reader.read()
    scene.commits = False
    reader.say("ack t 1")

    scene.broker.forget("anna", "t")
    scene.commit()

    assert reader.read() == [
        SESSION,
        "error: subscription to t ended: the subscription was forgotten",
    ]


def test_output_is_made_as_far_as_there_is_room(scene: Scene, writer: Peer) -> None:
    reader = connect(scene, "window 10000")
    for topic in "abc":
        writer.say(f"pub {topic} {{}}")
        reader.say(f"sub {topic}")
    big = "x" * 1000
    scene.commits = False
    for topic in "abc":
        writer.say(*[f'pub {topic} {{"msg":"{big}"}}'] * 100)
    scene.broker.log.commit()

    first = b"".join(reader.gateway.output(scene.clock.now_s(), 1000))
    rest = b"".join(reader.gateway.output(scene.clock.now_s(), 1 << 20))

    assert first.count(b"\n") == 100
    assert rest.count(b"\n") == 200


def test_nobody_has_a_pubrel_here(scene: Scene, writer: Peer) -> None:
    reader = connect(scene, "sub t")
    assert isinstance(reader.gateway, LineGateway)
    (subscription,) = scene.broker.subscriptions
    consumer: Consumer = subscription.consumers[0]

    with pytest.raises(AssertionError, match="no PUBREL"):
        reader.gateway.released(consumer, [])


# What a user may do


def test_a_user_with_rules_publishes_where_they_say(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "in/#")))
    anna = connect(scene, "as anna pw", "confirm on")

    one_topic = anna.say('pub out {"id":1}', 'pub out {"id":2}')
    several = anna.say('pub out {"id":3}', 'pub in/a {"id":4}', "pub in/a {", "x")
    run = anna.say('pub in/a {"id":5}', 'pub in/a {"id":6}')

    refused = "error: user anna may not publish to out"
    assert one_topic == [refused] * 2
    assert several[:2] == [refused, "published in/a 4 0"]
    assert run == ["published in/a 5 1", "published in/a 6 2"]
    assert scene.broker.log.topics() == ["in/a"]
    scene.close()


def test_a_user_with_rules_subscribes_where_they_say(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "t"), Rule("read", "out")))
    for topic in ("t", "out"):
        scene.broker.create_topic(topic)
    anna = connect(scene, "as anna pw")

    answers = anna.say("sub out", "sub t", "sub new", "as anna", "unsub out", "unsub t")

    may_not = "error: user anna may not subscribe to"
    assert answers == [
        f"{may_not} out",
        SUBSCRIBED,
        f"{may_not} new",
        "error: as must come before the first sub",
        f"{may_not} out",
        "successfully unsubscribe from topic t",
    ]
    scene.close()


def test_another_subscriber_name_brings_no_other_rules(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "in/#")))
    scene.broker.create_topic("t")

    answers = connect(scene, "as anna pw").say("as bert", "sub t", "unsub t")

    may_not = "error: user anna may not subscribe to t"
    assert answers == ["subscriber bert", may_not, may_not]
    scene.close()


def test_a_rule_may_name_the_subscribers_it_is_good_for(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "t", ("job-*",))))
    scene.broker.create_topic("t")
    anna = connect(scene, "as anna pw")

    answers = anna.say("sub t", "unsub t", "as job-1", "sub t")

    refused = (
        "error: user anna may not subscribe as anna to t: "
        "it needs the rule 'anna may subscribe t as anna'"
    )
    assert answers == [refused, refused, "subscriber job-1", SUBSCRIBED]
    assert [one.subscriber for one in scene.broker.subscriptions] == ["job-1"]
    scene.close()
