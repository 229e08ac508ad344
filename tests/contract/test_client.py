"""What both clients promise, whichever way they wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import __version__
from penstock.client import outgoing
from penstock.errors import (
    ConnectionLost,
    InvalidBatch,
    NotRunning,
    ServerRefused,
    SubscriptionEnded,
)
from penstock.model.event import Event
from tests.contract.clients import Async, Blocking, Connect, closing_all
from tests.local_server import LocalServer, local_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture(params=[Blocking, Async], ids=["blocking", "aio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    with closing_all(request.param) as connect:
        yield connect


def payloads(taken: list) -> list[bytes]:
    return [delivery.payload for delivery in taken]


# Connecting


def test_a_client_knows_the_version_of_its_server(
    connect: Connect, server: LocalServer
) -> None:
    assert connect(server.data).version == __version__


@pytest.mark.parametrize("where", ["data", "nowhere"])
def test_a_directory_without_a_server_is_named(
    connect: Connect, server: LocalServer, where: str
) -> None:
    server.stop()
    directory = server.data.with_name(where)

    with pytest.raises(NotRunning) as caught:
        connect(directory)

    assert str(caught.value) == (
        f"no server for data directory {directory}: nothing listens there"
    )


def test_a_directory_may_have_a_long_name(connect: Connect, tmp_path: Path) -> None:
    data = tmp_path / ("d" * 200)
    data.mkdir()
    short = tmp_path / "s"
    with local_server(short):
        (data / "penstock.sock").symlink_to(short / "penstock.sock")

        assert connect(data).version == __version__


def test_an_address_where_nobody_listens_is_named(connect: Connect) -> None:
    with pytest.raises(NotRunning, match=r"no server for 127\.0\.0\.1:1: nothing"):
        connect("127.0.0.1:1")


def test_a_login_is_asked_for(connect: Connect, tmp_path: Path) -> None:
    with local_server(tmp_path / "data", {"anna": "secret"}) as server:
        client = connect(server.data, user="anna", password="secret")

        assert client.ask("topics")["topics"] == []


@pytest.mark.parametrize(
    ("user", "password", "text"),
    [
        (
            None,
            None,
            (
                "login refused: this server asks for a user and a password, "
                "or a token of scope admin"
            ),
        ),
        ("anna", "wrong", "login refused: wrong password for anna"),
    ],
)
def test_a_wrong_login_is_refused(
    connect: Connect, tmp_path: Path, user: str, password: str, text: str
) -> None:
    with local_server(tmp_path / "data", {"anna": "secret"}) as server:
        with pytest.raises(ServerRefused) as caught:
            connect(server.data, user=user, password=password)

        assert (caught.value.error, str(caught.value)) == ("LoginRefused", text)


def test_a_server_with_too_many_connections_says_so(
    connect: Connect, server: LocalServer
) -> None:
    server.greeting = b"error: too many connections, limit 3\r\n"

    with pytest.raises(ServerRefused, match="^too many connections, limit 3$"):
        connect(server.data)


# Publishing


def test_publishing_tells_offsets_and_ids(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", b"zero", ids=["mine"])

    offsets = client.publish("t", [b"one", "zwö"])

    assert list(offsets) == [1, 2]
    taken = client.subscribe("t", start="earliest").take(3)
    assert payloads(taken) == [b"zero", b"one", "zwö".encode()]
    assert [one.event.id for one in taken[1:]] == [offsets.id(0), offsets.id(1)]


def test_an_event_keeps_what_it_has(connect: Connect, server: LocalServer) -> None:
    client = connect(server.data, name="shop")
    event = Event(
        topic="elsewhere",
        offset=7,
        id="e7",
        timestamp_ms=5,
        payload=b"p",
        key=b"k",
        priority=9,
        headers={"h": "v"},
        parent="e6",
    )

    client.publish("t", event)

    (taken,) = client.subscribe("t", start="earliest").take(1)
    got = taken.event
    assert (got.topic, got.offset, got.id, got.key) == ("t", 0, "e7", b"k")
    assert (got.priority, got.headers, got.parent) == (9, {"h": "v"}, "e6")
    assert (got.payload, got.producer, taken.tries) == (b"p", "shop", 1)


def test_a_large_batch_goes_in_parts(
    connect: Connect, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "PART_EVENTS", 3)
    client = connect(server.data)
    ids = [f"i{n}" for n in range(8)]

    offsets = client.publish("t", [b"%d" % n for n in range(8)], ids=ids)

    assert list(offsets) == list(range(8))
    assert [offsets.id(n) for n in range(8)] == ids
    taken = client.subscribe("t", start="earliest").take(8)
    assert payloads(taken) == [b"%d" % n for n in range(8)]


def test_a_dedup_id_stores_once(connect: Connect, server: LocalServer) -> None:
    client = connect(server.data)

    first = client.publish("t", [b"a", b"b"], dedup_ids=["x", None])
    again = client.publish("t", [b"a", b"c"], dedup_ids=["x", "y"])

    assert (list(first), list(again)) == ([0, 1], [0, 2])
    assert again.id(0) is None


def test_nothing_is_published_as_nothing(connect: Connect, server: LocalServer) -> None:
    assert list(connect(server.data).publish("t", [])) == []


def test_columns_have_to_fit(connect: Connect, server: LocalServer) -> None:
    with pytest.raises(InvalidBatch, match="number of ids is 1: must be 2"):
        connect(server.data).publish("t", [b"a", b"b"], ids=["1"])


def test_the_error_of_a_server_has_its_name(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)

    with pytest.raises(ServerRefused) as caught:
        client.publish("$t", b"x")

    assert caught.value.error == "ReservedName"
    assert list(client.publish("t", b"the client goes on")) == [0]


# Consuming


def test_acked_events_do_not_come_again(connect: Connect, server: LocalServer) -> None:
    client = connect(server.data)
    client.publish("t", [b"0", b"1", b"2"])
    subscription = client.subscribe("t", "me", start="earliest")
    taken = subscription.take(3)
    subscription.ack(taken[0])
    subscription.ack(taken[2])
    subscription.close()

    (again,) = client.subscribe("t", "me").take(1)

    assert (again.payload, again.tries) == (b"1", 2)


def test_acks_are_sent_when_the_client_closes(
    connect: Connect, server: LocalServer
) -> None:
    one, two = connect(server.data), connect(server.data)
    one.publish("t", [b"0", b"1"])
    subscription = one.subscribe("t", "me", start="earliest")
    subscription.ack(subscription.take(2)[0])
    subscription.flush()

    assert one.ask("settled") is None

    view = two.ask("subscriptions.show", subscriber="me", topic="t")
    assert (view["position"], view["lag"]) == (1, 1)


def test_a_refused_event_comes_again_and_then_is_a_dead_letter(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", b"bad")
    subscription = client.subscribe("t", "me", start="earliest", tries=2)

    for tries in (1, 2):
        (delivery,) = subscription.take(1)
        assert delivery.tries == tries
        subscription.nack(delivery, f"no {tries}")

    client.ask("settled")
    (letter,) = client.ask("dead-letters")["letters"]
    assert (letter["subscriber"], letter["reason"]) == ("me", "no 2")


def test_a_refusal_says_what_kind_of_error_it_was_and_whether_it_is_final(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", b"bad")
    subscription = client.subscribe("t", "me", start="earliest", tries=9)
    (delivery,) = subscription.take(1)

    subscription.nack(
        delivery, "no", kind="ValueError", traceback="…", duration_s=0.5, final=True
    )

    client.ask("settled")
    (letter,) = client.ask("dead-letters")["letters"]
    assert (letter["tries"], letter["reason"]) == (1, "ValueError: no")


def test_pauses_between_tries_are_as_wished(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", b"0")

    client.subscribe(
        "t", "me", backoff_s=1.0, backoff_factor=3.0, max_backoff_s=9.0, jitter=0.5
    )

    policy = server._broker.subscription("me", "t").policy
    assert (policy.backoff_s, policy.backoff_factor) == (1.0, 3.0)
    assert (policy.max_backoff_s, policy.jitter) == (9.0, 0.5)


def test_what_was_not_begun_when_a_client_leaves_was_not_tried(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", [b"0", b"1", b"2", b"3"])
    subscription = client.subscribe("t", "me", start="earliest", tries=1)
    _, put_back = subscription.take(2)
    subscription.it.put_back([put_back.offset])

    subscription.close()

    again = client.subscribe("t", "me", tries=1).take(3)
    assert [(one.offset, one.tries) for one in again] == [(1, 1), (2, 1), (3, 1)]
    (letter,) = client.ask("dead-letters")["letters"]
    assert letter["offset"] == 0


def test_with_auto_ack_events_are_settled_by_being_sent(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", [b"0", b"1"])
    subscription = client.subscribe("t", "me", start="earliest", auto_ack=True)
    subscription.ack(subscription.take(2)[0])

    view = client.ask("subscriptions.show", subscriber="me", topic="t")

    assert (view["position"], view["qos"]) == (2, 0)


def test_a_topic_that_is_deleted_ends_its_subscriptions(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", b"0")
    subscription = client.subscribe("t", start="earliest")
    subscription.take(1)
    client.ask("topics.delete", name="t")

    with pytest.raises(SubscriptionEnded) as caught:
        subscription.take(1)

    assert str(caught.value) == "subscription to t ended: the topic was deleted"


def test_closing_a_subscription_twice_is_once(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", b"0")
    subscription = client.subscribe("t")

    subscription.close()
    subscription.close()

    assert client.ask("subscriptions")["subscriptions"] == []


# Trouble


def test_a_server_that_goes_is_noticed(connect: Connect, server: LocalServer) -> None:
    client = connect(server.data)
    client.publish("t", b"0")
    subscription = client.subscribe("t")
    server.stop()

    with pytest.raises(ConnectionLost, match="^connection to data directory .* lost"):
        subscription.take(1)
    with pytest.raises(ConnectionLost):
        client.publish("t", b"1")


def test_a_server_that_does_not_answer_is_given_up(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data, timeout_s=1.0)
    server.mute = True

    with pytest.raises(ConnectionLost, match=r"no answer within 1 s"):
        client.ask("topics")


def test_the_last_words_of_a_server_are_told(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)

    with pytest.raises(ServerRefused, match="native protocol: not a client's message"):
        client.ask(5)


# Fetching and staging


def test_a_range_is_fetched_part_by_part(connect: Connect, server: LocalServer) -> None:
    client = connect(server.data)
    for number in range(10):
        client.publish("t", [b"%d" % number], keys=[b"k"])
    found, at = [], 2

    while at < 9:
        part = client.fetch("t", at, 9, max_bytes=300)
        assert len(part.batches) < 7
        found += [event for batch in part.batches for event in batch.events()]
        at = part.next_offset

    assert [(one.offset, one.payload, one.key) for one in found] == [
        (number, b"%d" % number, b"k") for number in range(2, 9)
    ]
    assert (part.start_offset, part.end_offset, at) == (0, 10, 9)


def test_what_cannot_be_fetched_is_said(connect: Connect, server: LocalServer) -> None:
    client = connect(server.data)
    client.publish("t", b"0")

    with pytest.raises(ServerRefused) as unknown:
        client.fetch("u", 0, 1)
    with pytest.raises(ServerRefused) as outside:
        client.fetch("t", 2, 3)

    assert unknown.value.error == "UnknownTopic"
    assert outside.value.error == "OffsetOutOfRange"


def test_an_epoch_is_staged_in_pieces_and_committed_once(
    connect: Connect, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "PART_EVENTS", 2)
    client = connect(server.data)

    piece = client.stage("q", 0, 1, 77, "t", [b"0", b"1", b"2"], ids=["a", "b", "c"])
    piece = client.stage("q", 0, 1, 77, "t", [b"3"], piece=piece, priorities=[9])
    empty = client.stage("q", 0, 2, 77, "t", [])
    first = client.ask("sinks.commit", query="q", epoch=0, parts=[[1, 77], [2, 77]])
    again = client.ask("sinks.commit", query="q", epoch=0, parts=[[1, 77], [2, 77]])

    assert (piece, empty) == (3, 1)
    assert (first["before"], first["events"], again["before"]) == (False, 4, True)
    part = client.fetch("t", 0, 10)
    events = [event for batch in part.batches for event in batch.events()]
    assert [one.payload for one in events] == [b"0", b"1", b"2", b"3"]
    assert [one.id for one in events][:3] == ["a", "b", "c"]
    assert [one.priority for one in events] == [0, 0, 0, 9]


def test_an_epoch_that_is_not_there_is_missing(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)

    with pytest.raises(ServerRefused) as caught:
        client.ask("sinks.commit", query="q", epoch=0, parts=[[0, 0]])

    assert caught.value.error == "MissingStage"
    assert "write the epoch again" in caught.value.hint


def test_progress_is_seen_as_the_lag_of_a_subscriber(
    connect: Connect, server: LocalServer
) -> None:
    client = connect(server.data)
    client.publish("t", [b"0", b"1", b"2"])

    moved = client.ask(
        "subscriptions.progress", subscriber="spark:q", topic="t", offset=2, by="q"
    )

    assert moved["position"] == 2
    (row,) = client.ask("subscriptions", topic="t")["subscriptions"]
    assert (row["subscriber"], row["lag"]) == ("spark:q", 1)
