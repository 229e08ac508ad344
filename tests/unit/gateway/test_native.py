from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import __version__
from penstock.access.grants import ADMINISTRATOR, Grants, Rule
from penstock.broker.options import BrokerOptions
from penstock.delivery import fresh, subscription
from penstock.desk.desk import Desk
from penstock.desk.figures import Figures
from penstock.gateway.gateway import LOGIN_BYTES
from penstock.gateway.options import NativeOptions
from penstock.log import Columns
from penstock.model.failure import MAX_MESSAGE_BYTES
from penstock.wire.native import (
    Answer,
    Ask,
    ChannelMoved,
    ClientMessage,
    Ended,
    Events,
    Finish,
    Hello,
    Prefetch,
    Publish,
    Published,
    Refuse,
    RequestRefused,
    ServerMessage,
    Settle,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
    encode,
)
from penstock.wire.native.messages import MAX_OFFSETS
from tests.unit.gateway.native_peer import HELLO, NativePeer, only
from tests.unit.gateway.scene import Rules, Scene, limited

ASKS = "this server asks for a user and a password, or a token of scope admin"


def publish(scene: Scene, *payloads: bytes, topic: str = "t") -> None:
    NativePeer(scene).say(Publish(1, topic, list(payloads)))


def offsets(found: list[Events]) -> list[int]:
    return [offset for one in found for offset in one.offsets]


def seqs(peer: NativePeer) -> list[int]:
    """Of the answers that leave now."""
    peer.peer.pull()
    return [getattr(one, "seq", 0) for one in peer.read()]


# Hello


def test_hello_is_answered_with_the_version(scene: Scene) -> None:
    peer = NativePeer(scene, None)
    assert not peer.gateway.settled

    assert peer.say(HELLO) == [Welcome(__version__, NativeOptions().max_message_bytes)]
    assert peer.gateway.settled


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ([Ask(1, "topics", {})], "Hello has to come first"),
        ([Publish(1, "t", [b"x"])], "Hello has to come first"),
        ([HELLO, HELLO], "Hello twice"),
    ],
)
def test_hello_comes_first_and_once(
    scene: Scene, first: list[ClientMessage], said: str
) -> None:
    peer = NativePeer(scene, None)

    answer = peer.say(*first)[-1]

    assert answer == RequestRefused(
        0, "RemoteProtocolError", f"native protocol: {said}"
    )
    assert peer.peer.closed
    assert scene.broker.log.topics() == []


def test_a_name_that_cannot_be_printed_is_refused(scene: Scene) -> None:
    (answer,) = NativePeer(scene, None).say(Hello(None, None, "a\nb"))

    assert isinstance(answer, RequestRefused)
    assert answer.error == "InvalidName"


def test_what_follows_a_login_waits_for_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "secret"}))
    peer = NativePeer(scene, None)

    answers = peer.say(Hello("anna", "secret", ""), Publish(1, "t", [b"x"]))

    assert isinstance(answers[0], Welcome)
    assert [type(one) for one in answers] == [Welcome, Published]
    scene.close()


@pytest.mark.parametrize(("users", "by"), [({"anna": "secret"}, "anna"), ({}, "bert")])
def test_who_has_logged_in_is_who_does_it(
    tmp_path: Path, users: dict[str, str], by: str
) -> None:
    boss = Grants(user="anna", admin=True)
    scene = Scene(tmp_path, Rules(passwords=users, grants={"anna": boss}))
    hello = Hello("anna", "secret", "") if users else HELLO
    peer = NativePeer(scene, hello, grants=ADMINISTRATOR)
    scene.broker.dead_letter(gateway="json", reason="no JSON", raw=b"x")
    scene.broker.log.commit()
    drop: dict[str, object] = {"numbers": [0], "reason": "old", "by": "bert"}

    peer.say(Ask(1, "dead-letters.drop", drop))
    (audit,) = only(Answer, peer.say(Ask(2, "dead-letters.audit", {})))

    assert isinstance(audit.result, dict)
    assert [one["by"] for one in audit.result["entries"]] == [by]
    scene.close()


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        (Hello("anna", "wrong", ""), "wrong password for anna"),
        (Hello("anna", None, ""), ASKS),
        (HELLO, ASKS),
    ],
)
def test_a_wrong_login_ends_the_connection(
    tmp_path: Path, hello: Hello, said: str
) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "secret"}))
    peer = NativePeer(scene, None)

    answers = peer.say(hello, Publish(1, "t", [b"x"]))

    text = f"login refused: {said}"
    assert answers == [RequestRefused(0, "LoginRefused", text, "", {"reason": said})]
    assert peer.peer.closed
    assert scene.broker.log.topics() == []
    scene.close()


def test_before_hello_messages_are_small(scene: Scene) -> None:
    peer = NativePeer(scene, None)

    peer.peer.send((LOGIN_BYTES + 1).to_bytes(4, "little"))

    (answer,) = peer.read()
    assert answer == RequestRefused(
        0,
        "RemoteProtocolError",
        "native protocol: message of 16385 bytes exceeds 16384",
    )
    assert peer.peer.closed


def test_a_message_too_large_ends_the_connection(scene: Scene) -> None:
    peer = NativePeer(scene, options=NativeOptions(max_message_bytes=2000))

    answers = peer.say(Publish(1, "t", [b"x" * 3000]))

    assert [type(one) for one in answers] == [RequestRefused]
    assert peer.peer.closed


def test_what_came_before_junk_is_carried_out(scene: Scene) -> None:
    peer = NativePeer(scene)

    peer.peer.send(encode(Publish(1, "t", [b"x"])) + b"\x02\0\0\0\xff\xff")
    peer.peer.send(encode(Publish(2, "t", [b"never"])))

    assert [type(one) for one in peer.read()] == [Published, RequestRefused]
    assert scene.broker.log.topic("t").end_offset == 1


def test_at_the_end_of_the_stream_the_connection_closes(scene: Scene) -> None:
    peer = NativePeer(scene)

    peer.peer.end()

    assert peer.peer.closed


# Consuming


def test_events_follow_when_the_subscription_is_durable(scene: Scene) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene)
    scene.commits = False

    assert peer.say(Subscribe(1, "t", "me", "earliest")) == []
    scene.commit()

    subscribed, events = peer.read()
    assert subscribed == Subscribed(1, 1, 0)
    assert isinstance(events, Events)
    assert (events.channel, events.offsets, events.payloads) == (
        1,
        [0, 1],
        [b"a", b"b"],
    )
    assert events.tries is None


def test_a_temporary_subscriber_waits_for_nothing_and_ends_with_its_connection(
    scene: Scene,
) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    scene.commits = False

    answers = peer.say(Subscribe(1, "t", start=0), Subscribe(2, "t", start=0))

    assert [type(one) for one in answers] == [Subscribed, Events, Subscribed, Events]
    assert len(scene.broker.subscriptions) == 2
    peer.peer.disconnect()
    assert len(scene.broker.subscriptions) == 0


def test_the_window_is_filled_again_by_settling(scene: Scene) -> None:
    publish(scene, *[b"x"] * 5)
    peer = NativePeer(scene)

    first = only(Events, peer.say(Subscribe(1, "t", "me", "earliest", window=2)))
    second = only(Events, peer.say(Settle(1, [0])))
    third = only(Events, peer.say(Settle(1, [2, 1])))

    assert [offsets(one) for one in (first, second, third)] == [[0, 1], [2], [3, 4]]


@pytest.mark.parametrize("message", [Settle(7, [0]), Settle(1, [99]), Settle(1, [])])
def test_settling_what_is_not_held_changes_nothing(
    scene: Scene, message: Settle
) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest", window=1))

    assert peer.say(message) == []
    assert scene.broker.subscription("me", "t").lag() == 2


def test_only_the_consumer_that_holds_an_event_settles_it(scene: Scene) -> None:
    publish(scene, b"a", b"b")
    one, two = NativePeer(scene), NativePeer(scene)
    first = only(Events, one.say(Subscribe(1, "t", "me", "earliest", window=1)))
    two.say(Subscribe(1, "t", "me", "earliest", window=1))
    assert offsets(first) == [0]

    two.say(Settle(1, [0]), Refuse(1, 0, "not mine"))

    assert scene.broker.subscription("me", "t").position() == 0
    one.say(Settle(1, [0]))
    assert scene.broker.subscription("me", "t").position() == 1


def test_a_lost_connection_gives_its_events_to_the_next(scene: Scene) -> None:
    publish(scene, b"a", b"b")
    one = NativePeer(scene)
    one.say(Subscribe(1, "t", "me", "earliest"), Settle(1, [0]))
    one.say(Settle(1, [0]))

    one.peer.disconnect()

    (again,) = only(Events, NativePeer(scene).say(Subscribe(1, "t", "me")))
    assert (again.offsets, again.tries) == ([1], [2])


def test_settled_events_stay_settled_over_a_crash(scene: Scene) -> None:
    publish(scene, b"a", b"b", b"c")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest"))
    peer.say(Settle(1, [0, 2]), Ask(2, "settled", {}))

    scene.restart(kill=True)

    (again,) = only(Events, NativePeer(scene).say(Subscribe(1, "t", "me")))
    assert again.offsets == [1]


def test_settled_is_answered_when_it_is_durable(scene: Scene) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest"))
    scene.commits = False

    assert peer.say(Settle(1, [0]), Ask(2, "settled", {})) == []
    scene.commit()

    assert peer.read() == [Answer(2, None)]


def test_what_settles_by_being_sent_is_durable_when_settled_is_answered(
    scene: Scene,
) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    scene.commits = False
    peer.say(Subscribe(1, "t", "me", "earliest", auto_ack=True))
    scene.commit()
    assert [one.offsets for one in only(Events, peer.read())] == [[0]]

    assert peer.say(Ask(2, "settled", {})) == []
    scene.commit()

    assert peer.read() == [Answer(2, None)]


def test_a_refused_event_is_tried_again_until_it_is_a_dead_letter(scene: Scene) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest", tries=2))

    (again,) = only(Events, peer.say(Refuse(1, 0, "first")))
    assert (again.offsets, again.tries) == ([0], [2])
    assert peer.say(Refuse(1, 0, "x" * 9000)) == []

    (answer,) = only(Answer, peer.say(Ask(3, "dead-letters.show", {"number": 0})))
    assert isinstance(answer.result, dict)
    assert answer.result["errors"] == ["first", "x" * MAX_MESSAGE_BYTES]


def test_refusing_on_a_channel_that_is_gone_is_nothing(scene: Scene) -> None:
    assert NativePeer(scene).say(Refuse(1, 0, "late")) == []


def test_a_refusal_tells_everything_about_the_error(scene: Scene) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest", tries=5))

    peer.say(Refuse(1, 0, "bad", "ValueError", "x" * 20_000 + "Traceback", 0.5))

    one = scene.broker.subscription("me", "t")
    (failure,) = one.errors[0]
    assert (failure.tries, failure.line) == (1, "ValueError: bad")
    assert failure.traceback == "x" * (16_384 - 9) + "Traceback"
    assert failure.duration_s == 0.5


def test_what_was_never_begun_is_no_try(scene: Scene) -> None:
    publish(scene, b"a", b"b", b"c")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest", tries=1, window=3))

    peer.say(Unsubscribe(2, 1, [1, 2]))

    (again,) = only(Events, peer.say(Subscribe(3, "t", "me", tries=1, window=3)))
    assert (again.offsets, again.tries) == ([1, 2], None)
    (answer,) = only(Answer, peer.say(Ask(4, "dead-letters.show", {"number": 0})))
    assert isinstance(answer.result, dict)
    assert (answer.result["offset"], answer.result["tries"]) == (0, 1)


def test_a_final_refusal_is_a_dead_letter_at_once(scene: Scene) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest"))

    assert only(Events, peer.say(Refuse(1, 0, "never", final=True))) == []

    one = scene.broker.subscription("me", "t")
    assert list(one.owed) == [1]
    (answer,) = only(Answer, peer.say(Ask(3, "dead-letters.show", {"number": 0})))
    assert isinstance(answer.result, dict)
    assert (answer.result["reason"], answer.result["tries"]) == ("never", 1)


def test_pauses_between_tries_are_as_the_subscriber_wishes(scene: Scene) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    topic_filter = Subscribe(
        1, "t", "me", backoff_s=1.5, backoff_factor=3, max_backoff_s=9, jitter=0.25
    )

    peer.say(topic_filter)

    policy = scene.broker.subscription("me", "t").policy
    assert (policy.backoff_s, policy.backoff_factor) == (1.5, 3)
    assert (policy.max_backoff_s, policy.jitter) == (9, 0.25)


def test_with_auto_ack_nothing_is_in_flight(scene: Scene) -> None:
    publish(scene, *[b"x"] * 9)
    peer = NativePeer(scene)

    (events,) = only(
        Events, peer.say(Subscribe(1, "t", "me", "earliest", window=9, auto_ack=True))
    )

    assert len(events.offsets) == 9
    assert scene.broker.subscription("me", "t").lag() == 0


def test_priority_goes_first_and_shares_a_message(scene: Scene) -> None:
    NativePeer(scene).say(
        Publish(1, "t", [b"a", b"b", b"c"], priorities=[0, 9, 3]),
    )

    (events,) = only(
        Events,
        NativePeer(scene).say(Subscribe(1, "t", "me", "earliest", order="priority")),
    )

    assert (events.offsets, events.priorities) == ([1, 2, 0], [9, 3, 0])


@pytest.mark.parametrize("order", ["log", "priority"])
def test_all_of_a_backlog_comes_however_little_is_taken_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    for module in (fresh, subscription):
        monkeypatch.setattr(module, "TAKE_BYTES", 100)
    peer = NativePeer(scene)
    peer.say(Publish(1, "t", [bytes(40)] * 50, priorities=[3] * 50))

    got = only(Events, peer.say(Subscribe(1, "t", "me", "earliest", order=order)))

    assert offsets(got) == [*range(50)]
    assert len(got) > 10


def test_unsubscribing_keeps_the_position_of_a_name(scene: Scene) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest"))

    answers = peer.say(Settle(1, [0]), Unsubscribe(2, 1))
    publish(scene, b"c")

    assert answers == [Answer(2, None)]
    assert peer.read() == []
    (again,) = only(Events, peer.say(Subscribe(3, "t", "me")))
    assert (again.channel, again.offsets) == (2, [1, 2])


def test_events_wait_for_who_left_in_order(scene: Scene) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest"))
    peer.say(Settle(1, [0]), Unsubscribe(2, 1))

    found = Desk(scene.broker).subscription(subscriber="me", topic="t")

    assert (found.state, found.lag) == ("away", 1)
    assert Figures(scene.broker).overview().lag == 1


def test_what_was_settled_by_sending_counts_when_leaving_is_answered(
    scene: Scene,
) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest", auto_ack=True))

    assert peer.say(Unsubscribe(2, 1)) == [Answer(2, None)]
    scene.restart(kill=True)

    assert scene.broker.subscription("me", "t").position() == 2


def test_unsubscribing_an_unknown_channel_is_answered(scene: Scene) -> None:
    assert NativePeer(scene).say(Unsubscribe(5, 9)) == [Answer(5, None)]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Subscribe(1, "none"), "UnknownTopic"),
        (Subscribe(1, "t", start="soon"), "InvalidOption"),
        (Subscribe(1, "t", start=-1), "InvalidOption"),
        (Subscribe(1, "t", order="random"), "InvalidOption"),
        (Subscribe(1, "t", window=0), "InvalidOption"),
        (Subscribe(1, "t", tries=0), "InvalidOption"),
        (Subscribe(1, "t", ack_timeout_s=-1), "InvalidOption"),
        (Subscribe(1, "t", backoff_s=-1), "InvalidOption"),
        (Subscribe(1, "t", jitter=1.5), "InvalidOption"),
        (Subscribe(1, "t", ""), "InvalidName"),
        (Subscribe(1, "t", "x" * 300), "InvalidName"),
        (Subscribe(1, "t", "$me"), "ReservedName"),
        (Subscribe(1, "t", "line", order="log"), "WrongOrder"),
    ],
)
def test_a_subscription_that_cannot_be_is_a_problem(
    scene: Scene, message: Subscribe, error: str
) -> None:
    publish(scene, b"a")
    NativePeer(scene).say(Subscribe(1, "t", "line", order="priority"))
    known = len(scene.broker.subscriptions)

    (answer,) = NativePeer(scene).say(message)

    assert isinstance(answer, RequestRefused)
    assert (answer.seq, answer.error) == (1, error)
    assert len(scene.broker.subscriptions) == known


def test_the_end_of_a_subscription_is_told(scene: Scene) -> None:
    publish(scene, b"a")
    peer, other = NativePeer(scene), NativePeer(scene, grants=ADMINISTRATOR)
    peer.say(Subscribe(1, "t", "me"), Subscribe(2, "t", "you"))

    other.say(Ask(1, "subscriptions.forget", {"subscriber": "you", "topic": "t"}))

    assert peer.read() == [Ended(2, "the subscription was forgotten")]
    publish(scene, b"b")
    assert [one.channel for one in peer.events()] == [1]


def test_channels_take_turns_when_there_is_little_room(scene: Scene) -> None:
    publish(scene, *[b"x" * 1000] * 100)
    peer = NativePeer(scene)
    scene.commits = False
    for seq in (1, 2):
        message = Subscribe(seq, "t", start="earliest", window=10, auto_ack=True)
        peer.gateway.receive(encode(message), 1.0)
        peer.gateway.go_on(1.0)
    peer.gateway.output(1.0, 1)  # Subscribed leaves, and there is room for no more

    turns = []
    for _ in range(4):
        peer.peer.got += b"".join(peer.gateway.output(1.0, 1))
        turns += [one.channel for one in peer.events()]

    assert turns[-4:] in ([1, 2, 1, 2], [2, 1, 2, 1])


def test_no_handshake_of_qos_2_comes_here(scene: Scene) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me"))
    (consumer,) = scene.broker.subscription("me", "t").consumers

    with pytest.raises(AssertionError, match="no PUBREL"):
        peer.gateway.released(consumer, [])


# The desk


def test_a_question_is_answered_at_once(scene: Scene) -> None:
    publish(scene, b"a")
    scene.commits = False

    (answer,) = NativePeer(scene).say(Ask(4, "topics", {"limit": 3}))

    assert isinstance(answer, Answer)
    assert isinstance(answer.result, dict)
    assert [topic["name"] for topic in answer.result["topics"]] == ["t"]


@pytest.mark.parametrize(
    ("verb", "arguments", "error"),
    [
        ("topcis", {}, "UnknownVerb"),
        ("topics", {"x": 1}, "InvalidArgument"),
        ("topics.show", {"name": "none"}, "UnknownTopic"),
        ("topics.delete", {"name": "none"}, "UnknownTopic"),
        ("dead-letters.show", {"number": 0}, "UnknownDeadLetter"),
    ],
)
def test_a_question_without_an_answer_is_a_problem(
    scene: Scene, verb: str, arguments: dict[str, object], error: str
) -> None:
    (answer,) = NativePeer(scene, grants=ADMINISTRATOR).say(Ask(4, verb, arguments))

    assert isinstance(answer, RequestRefused)
    assert (answer.seq, answer.error) == (4, error)


def test_each_question_of_a_read_has_a_turn_of_its_own(scene: Scene) -> None:
    peer = NativePeer(scene)
    asked = [Ask(seq, "topics", {}) for seq in range(2, 52)]
    said: list[ClientMessage] = [Publish(1, "t", [b"a"]), *asked]
    said.append(Publish(52, "t", [b"b"]))

    peer.gateway.receive(b"".join(map(encode, said)), 1.0)
    scene.broker.log.commit()

    assert seqs(peer) == [1]
    for seq in range(2, 51):
        assert peer.gateway.busy
        peer.gateway.go_on(1.0)
        assert seqs(peer) == [seq]
    assert scene.broker.log.topic("t").end_offset == 1
    peer.gateway.go_on(1.0)
    scene.broker.log.commit()
    assert seqs(peer) == [51, 52]
    assert not peer.gateway.busy


def test_questions_before_junk_are_answered_before_it(scene: Scene) -> None:
    peer = NativePeer(scene)
    asked = [Ask(seq, "topics", {}) for seq in (1, 2)]

    peer.peer.send(b"".join(map(encode, asked)) + b"\x02\0\0\0\xff\xff")

    assert [type(one) for one in peer.read()] == [Answer, Answer, RequestRefused]
    assert peer.peer.closed


def test_questions_of_a_connection_that_is_gone_are_not_answered(scene: Scene) -> None:
    peer = NativePeer(scene)
    peer.gateway.receive(encode(Ask(1, "topics.create", {"name": "t"})), 1.0)

    peer.peer.disconnect()

    assert not peer.gateway.busy
    assert scene.broker.log.topics() == []


@pytest.mark.parametrize("kind", [Settle, Unsubscribe, Finish])
def test_a_message_names_no_more_offsets_than_can_be_under_way(
    scene: Scene, kind: type[Settle | Unsubscribe | Finish]
) -> None:
    many = [1] * (MAX_OFFSETS + 1)
    peer = NativePeer(scene)
    message: ClientMessage = Settle(1, many)
    if kind is Unsubscribe:
        message = Unsubscribe(1, 1, many)
    elif kind is Finish:
        message = Finish(1, 1, many, [])

    (answer,) = peer.say(message)

    assert isinstance(answer, RequestRefused)
    assert "length <= 200000" in answer.text
    assert peer.peer.closed


def test_an_order_is_answered_when_it_is_durable(scene: Scene) -> None:
    peer = NativePeer(scene)
    scene.commits = False

    assert peer.say(Ask(1, "topics.create", {"name": "t"})) == []
    scene.commit()

    assert [type(one) for one in peer.read()] == [Answer]


def test_an_order_whose_write_fails_was_not_done(scene: Scene) -> None:
    peer = NativePeer(scene)
    scene.commits = False
    peer.say(Ask(1, "topics.create", {"name": "t"}))

    scene.fail_commit()

    (answer,) = peer.read()
    assert isinstance(answer, RequestRefused)
    assert (answer.seq, answer.error) == (1, "WriteFailed")
    assert scene.broker.log.topics() == []


def test_a_change_of_a_subscription_outlives_a_failed_write(scene: Scene) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene, grants=ADMINISTRATOR)
    peer.say(Subscribe(1, "t", "me", "earliest"))
    scene.commits = False
    peer.say(Ask(2, "subscriptions.forget", {"subscriber": "me", "topic": "t"}))

    scene.fail_commit()
    assert only(Answer, peer.read()) == []
    scene.commit()

    assert len(only(Answer, peer.read())) == 1
    scene.restart(kill=True)
    assert len(scene.broker.subscriptions) == 0


def test_deleting_a_topic_is_answered_when_it_is_stored(scene: Scene) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene, grants=ADMINISTRATOR)
    scene.commits = False

    peer.peer.send(encode(Ask(1, "topics.delete", {"name": "t"})))

    assert peer.read() == []
    assert scene.broker.log.topics() == ["t"]
    scene.commit()
    assert [type(one) for one in peer.read()] == [Answer]
    assert scene.broker.log.topics() == []


def test_limits_of_the_broker_count(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_topics=1)))
    publish(scene, b"a")

    (answer,) = NativePeer(scene).say(Publish(1, "u", [b"x"]))

    assert isinstance(answer, RequestRefused)
    assert answer.error == "LimitReached"
    scene.close()


@pytest.mark.slow
@given(st.data())
def test_a_conversation_is_the_same_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    said: list[ClientMessage] = [
        HELLO,
        Publish(1, "t", [b"a", b"b"]),
        Publish(2, "t", [b"c"]),
        Ask(3, "topics.show", {"name": "none"}),
        Publish(4, "t", [b"d"], ids=["x"]),
    ]
    stream = b"".join(map(encode, said))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=8)))
    scene = Scene(tmp_path_factory.mktemp("native"))
    peer = NativePeer(scene, None)

    for lo, hi in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        peer.peer.send(stream[lo:hi])

    answers = peer.read()
    assert [getattr(one, "seq", 0) for one in answers] == [0, 1, 2, 3, 4]
    placed = [one.offsets for one in only(Published, answers)]
    assert placed == [0, 2, 3]
    scene.close()


def test_what_is_said_of_deliveries_before_a_move_counts_for_nothing(
    scene: Scene,
) -> None:
    publish(scene, b"a", b"b")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest", tries=1))

    scene.broker.seek("me", "t", "earliest")
    finish = Finish(2, 1, [0], [Publish(0, "out", [b"x"])])
    answers = peer.say(Settle(1, [0]), Refuse(1, 1, "no"), finish)

    assert answers[0] == ChannelMoved(1, 2)
    assert offsets(only(Events, answers)) == [0, 1]
    assert Answer(2, False) in answers
    assert scene.broker.subscription("me", "t").position() == 0
    peer.say(Settle(2, [0]))
    assert scene.broker.subscription("me", "t").position() == 1


def test_leaving_a_channel_leaves_the_one_that_took_its_place(scene: Scene) -> None:
    publish(scene, b"a")
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest"))
    scene.broker.seek("me", "t", "earliest")
    scene.broker.seek("me", "t", "earliest")

    peer.say(Unsubscribe(2, 1, [0]))

    assert scene.broker.subscription("me", "t").consumers == []


def test_a_consumer_has_no_more_than_it_asked_for(scene: Scene) -> None:
    publish(scene, *[b"x"] * 9)
    one, two = NativePeer(scene), NativePeer(scene)

    first = one.say(Subscribe(1, "t", "me", "earliest", window=5, prefetch=3))
    second = two.say(Subscribe(1, "t", "me", "earliest", window=5, prefetch=3))

    assert offsets(only(Events, first)) == [0, 1, 2]
    assert offsets(only(Events, second)) == [3, 4]
    assert offsets(only(Events, one.say(Settle(1, [0, 1, 2])))) == [5, 6, 7]
    assert offsets(only(Events, two.say(Settle(1, [3, 4])))) == [8]


def test_events_in_order_go_to_one_consumer_at_a_time(scene: Scene) -> None:
    publish(scene, b"a")
    one, two = NativePeer(scene), NativePeer(scene)
    topic_filter = Subscribe(1, "t", "me", "earliest", in_order=True)
    one.say(topic_filter)

    (problem,) = only(RequestRefused, two.say(topic_filter))

    assert problem.error == "TakenInOrder"
    one.peer.disconnect()
    assert offsets(only(Events, two.say(topic_filter))) == [0]


# What a user may do


def test_a_user_with_rules_subscribes_and_asks_where_they_say(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "in/+")))
    for topic in ("in/a", "out"):
        scene.broker.create_topic(topic)
    anna = NativePeer(scene, Hello("anna", "pw", "bert"))

    got = anna.say(
        Subscribe(1, "in/a", "me"),
        Subscribe(2, "out", "me"),
        Subscribe(3, "out", None),
        Ask(4, "topics.show", {"name": "in/a"}),
        Ask(5, "topics.show", {"name": "out"}),
        Ask(6, "topics.delete", {"name": "in/a"}),
        Ask(7, "settled", {}),
        Ask(8, "nothing", {}),
    )

    assert [one.seq for one in only(Subscribed, got)] == [1]
    assert [one.seq for one in only(Answer, got)] == [4, 7]
    assert [(one.seq, one.error, one.text) for one in only(RequestRefused, got)][
        :-1
    ] == [
        (2, "NotAllowed", "user anna may not subscribe to out"),
        (3, "NotAllowed", "user anna may not subscribe to out"),
        (5, "NotAllowed", "user anna may not see out"),
        (
            6,
            "NotAllowed",
            (
                "user anna may not ask for topics.delete of in/a: "
                "it needs an administrator"
            ),
        ),
    ]
    assert only(RequestRefused, got)[-1].error == "UnknownVerb"
    assert "in/a" in scene.broker.log.topics()
    scene.close()


def test_a_rule_may_name_the_subscribers_it_is_good_for(tmp_path: Path) -> None:
    rule = Rule("subscribe", "in", ("anna", "job-*"))
    scene = Scene(tmp_path, limited(rule))
    scene.broker.create_topic("in")
    anna = NativePeer(scene, Hello("anna", "pw", ""))
    place: dict[str, object] = {"topic": "in", "offset": 0}

    got = anna.say(
        Subscribe(1, "in", "anna"),
        Subscribe(2, "in", "job-7"),
        Subscribe(3, "in", None),
        Subscribe(4, "in", "billing"),
        Ask(5, "subscriptions.progress", {"subscriber": "job-8", **place}),
        Ask(6, "subscriptions.progress", {"subscriber": "billing", **place}),
    )

    assert [one.seq for one in only(Subscribed, got)] == [1, 2, 3]
    assert [one.seq for one in only(Answer, got)] == [5]
    assert [(one.seq, one.text) for one in only(RequestRefused, got)] == [
        (
            seq,
            (
                "user anna may not subscribe as billing to in: "
                "it needs the rule 'anna may subscribe in as billing'"
            ),
        )
        for seq in (4, 6)
    ]
    scene.close()


# Tokens


@pytest.mark.parametrize("users", [{}, {"anna": "secret"}])
def test_a_token_of_an_administrator_lets_one_in(
    tmp_path: Path, users: dict[str, str]
) -> None:
    scene = Scene(tmp_path, Rules(passwords=users))
    scene.broker.create_topic("t")
    scene.commit()
    scene.rules.tokens["pk_x"] = Grants(admin=True, token="ci")
    peer = NativePeer(scene, None)

    (welcome,) = peer.say(Hello(None, None, "", "pk_x"))
    (answer,) = peer.say(Ask(1, "topics.delete", {"name": "t"}))

    assert (type(welcome), type(answer)) == (Welcome, Answer)
    assert peer.gateway.who == "ci"
    assert peer.gateway.grants.token == "ci"
    scene.close()


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        (
            Hello(None, None, "", "pk_other"),
            "the token is not known here, or has expired",
        ),
        (
            Hello(None, None, "", "pk_read"),
            "the token grafana is not of scope admin: others are for HTTP",
        ),
        (
            Hello("anna", "x", "", "pk_x"),
            "say either a user and a password, or a token",
        ),
    ],
)
def test_other_tokens_do_not(scene: Scene, hello: Hello, said: str) -> None:
    scene.rules.tokens["pk_read"] = Grants(rules=(), token="grafana")
    peer = NativePeer(scene, None)

    answers = peer.say(hello, Publish(1, "t", [b"x"]))

    text = f"login refused: {said}"
    assert answers == [RequestRefused(0, "LoginRefused", text, "", {"reason": said})]
    assert peer.peer.closed
    assert scene.broker.log.topics() == []


def test_a_channel_may_have_more_or_less_on_its_way_from_now_on(scene: Scene) -> None:
    scene.broker.publish("t", Columns([b"%d" % n for n in range(20)], 0))
    scene.commit()
    peer = NativePeer(scene)

    def offsets(answers: list[ServerMessage]) -> list[int]:
        return [offset for one in only(Events, answers) for offset in one.offsets]

    assert offsets(
        peer.say(Subscribe(1, "t", "me", "earliest", prefetch=2)) + peer.read()
    ) == [0, 1]
    assert offsets(peer.say(Prefetch(1, 8))) == [2, 3, 4, 5, 6, 7]
    assert offsets(peer.say(Prefetch(1, 3), Settle(1, [0, 1, 2, 3]))) == []
    assert offsets(peer.say(Settle(1, [4, 5]))) == [8]
    assert peer.say(Prefetch(9, 5)) == []


def test_nothing_on_its_way_is_no_prefetch(scene: Scene) -> None:
    scene.broker.publish("t", Columns([b"0"], 0))
    peer = NativePeer(scene)
    peer.say(Subscribe(1, "t", "me", "earliest", prefetch=2))

    (refused,) = only(RequestRefused, peer.say(Prefetch(1, 0)))

    assert (refused.seq, refused.error) == (0, "InvalidOption")
