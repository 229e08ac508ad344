"""A session and a gateway, with nothing between them but bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import __version__
from penstock.access.grants import ADMINISTRATOR
from penstock.client.outgoing import Outgoing
from penstock.client.session import HELLO, NativeSession
from penstock.errors import RemoteProtocolError, ServerRefused
from penstock.gateway.options import NativeOptions
from penstock.wire.native import (
    Answer,
    Events,
    Published,
    RequestRefused,
    Subscribed,
    Welcome,
    encode,
)
from tests.unit.gateway.native_peer import NativePeer
from tests.unit.gateway.scene import Scene


class Pair:
    """A session whose bytes reach a gateway, and back again."""

    def __init__(self, scene: Scene) -> None:
        self.session = NativeSession()
        self._native = NativePeer(scene, None, grants=ADMINISTRATOR)

    def exchange(self) -> list[int]:
        peer = self._native.peer
        peer.send(self.session.output())
        got, peer.got = peer.got, b""
        return self.session.receive(got)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    scene = Scene(tmp_path)
    pair = Pair(scene)
    pair.session.hello("me", None, None)
    pair.exchange()
    yield pair
    scene.close()


def test_the_answer_to_hello_is_the_version(pair: Pair) -> None:
    limit = NativeOptions().max_message_bytes
    assert pair.session.answer(HELLO) == Welcome(__version__, limit)
    assert pair.session.version == __version__
    assert pair.session.max_frame_bytes == limit


def test_each_question_gets_its_answer_once(pair: Pair) -> None:
    first = pair.session.publish("t", Outgoing.of(b"a"))
    second = pair.session.publish("t", Outgoing.of([b"b", b"c"]))
    third = pair.session.ask("topics.show", {"name": "t"})

    assert pair.exchange() == [first, second, third]

    answer = pair.session.answer(second)
    assert isinstance(answer, Published)
    assert answer.offsets == 1
    assert pair.session.answer(second) is None
    assert isinstance(pair.session.answer(third), Answer)


def test_a_problem_is_raised_where_it_belongs(pair: Pair) -> None:
    seq = pair.session.subscribe("none")
    pair.exchange()

    with pytest.raises(ServerRefused, match="^topic none does not exist$"):
        pair.session.answer(seq)


def test_events_are_filed_by_channel_and_acks_leave_together(pair: Pair) -> None:
    session = pair.session
    session.publish("t", Outgoing.of([b"a", b"b"]))
    seq = session.subscribe("t", "me", start="earliest", window=1)
    pair.exchange()
    subscribed = session.answer(seq)
    assert isinstance(subscribed, Subscribed)
    inbox = session.inboxes[subscribed.channel]
    taken = inbox.take()
    assert isinstance(taken, Events)
    assert taken.payloads == [b"a"]

    inbox.acks.append(0)
    session.flush_acks()
    session.flush_acks()
    pair.exchange()

    taken = inbox.take()
    assert taken is not None
    assert taken.payloads == [b"b"]


def test_a_refusal_goes_at_once(pair: Pair) -> None:
    session = pair.session
    session.publish("t", Outgoing.of(b"a"))
    session.subscribe("t", "me", start="earliest", tries=1)
    pair.exchange()

    session.refuse(1, 0, "broken")
    seq = session.ask("settled", {})
    pair.exchange()
    session.answer(seq)
    seq = session.ask("dead-letters.show", {"number": 0})
    pair.exchange()

    answer = session.answer(seq)
    assert isinstance(answer, Answer)
    assert isinstance(answer.result, dict)
    assert answer.result["reason"] == "broken"


def test_events_of_a_channel_that_was_left_are_nobodys(pair: Pair) -> None:
    session = pair.session

    session.receive(encode(Events(9, [0], None, [1], ["a"], [b"p"])))

    assert session.inboxes == {}


def test_leaving_is_answered(pair: Pair) -> None:
    session = pair.session
    session.publish("t", Outgoing.of(b"a"))
    session.subscribe("t")
    pair.exchange()

    seq = session.unsubscribe(1)

    assert pair.exchange() == [seq]


def test_the_last_words_of_a_server_are_kept() -> None:
    session = NativeSession()
    session.receive(encode(Welcome("1")))
    problem = RequestRefused(0, "RemoteProtocolError", "what?")

    session.receive(encode(problem))

    assert session.farewell == problem


def test_a_server_that_turns_us_away_says_why() -> None:
    with pytest.raises(ServerRefused, match="^too many connections, limit 1$"):
        NativeSession().receive(b"error: too many connections, limit 1\r\n")


def test_junk_is_the_fault_of_the_server() -> None:
    with pytest.raises(RemoteProtocolError):
        NativeSession().receive(b"\x01\0\0\0\xff")


@pytest.mark.parametrize("words", [b"HTTP/1.1 400 Bad Request", b"\x01\0\0\0\xff"])
def test_a_port_that_speaks_something_else_is_doubted(words: bytes) -> None:
    session = NativeSession()
    session.receive(words[:3])

    with pytest.raises(RemoteProtocolError, match="is it the native port of a server?"):
        session.receive(words[3:])


def test_a_server_that_is_known_is_not_doubted(pair: Pair) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        pair.session.receive(b"HTTP/1.1 400 Bad Request")

    assert "native port" not in str(caught.value)


def test_an_answer_that_was_given_up_is_not_kept(pair: Pair) -> None:
    session = pair.session
    early, late = session.ask("topics", {}), session.ask("topics", {})
    session.give_up(late)
    pair.exchange()
    session.give_up(early)

    assert session.answer(early) is None
    assert session.answer(late) is None


def test_a_subscription_that_is_moved_goes_on_at_another_channel(pair: Pair) -> None:
    pair.session.publish("t", Outgoing.of([b"a", b"b"]))
    seq = pair.session.subscribe("t", "me", start="earliest", prefetch=1)
    pair.exchange()
    message = pair.session.answer(seq)
    assert isinstance(message, Subscribed)
    inbox = pair.session.inbox(message.channel)
    assert [one.offsets for one in inbox.batches] == [[0]]
    inbox.acks.append(0)

    place = {"subscriber": "me", "topic": "t", "start": 1}
    pair.session.ask("subscriptions.seek", place)
    pair.exchange()

    assert inbox.channel != message.channel
    assert pair.session.inbox(message.channel) is inbox
    assert [one.offsets for one in inbox.batches] == [[1]]
    assert inbox.acks == []
