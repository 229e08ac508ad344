"""What both kinds do is in tests/contract; here is what only this one does."""

from __future__ import annotations

import pytest

from penstock.client import Client, Subscription, blocking_subscription, connect
from tests.local_server import LocalServer


def filled(server: LocalServer, count: int) -> tuple[Client, Subscription]:
    client = connect(server.data)
    client.publish("t", [b"%d" % n for n in range(count)])
    return client, client.subscribe("t", "me", start="earliest")


def test_waiting_for_an_event_may_have_a_limit(server: LocalServer) -> None:
    client, subscription = filled(server, 1)
    with client:
        assert subscription.next(5.0) is not None

        assert subscription.next(0.01) is None
        assert subscription.next_batch(0.01) is None


def test_clients_and_subscriptions_end_with_their_blocks(server: LocalServer) -> None:
    with connect(server.data) as client:
        client.publish("t", b"0")
        with client.subscribe("t", "me", start="earliest") as subscription:
            for delivery in subscription:
                subscription.ack(delivery)
                break

        view = client.ask("subscriptions.show", subscriber="me", topic="t")
        assert isinstance(view, dict)
        assert (view["state"], view["lag"]) == ("away", 0)


def test_many_acks_are_sent_without_waiting(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocking_subscription, "MAX_ACKS", 2)
    client, subscription = filled(server, 5)
    with client, connect(server.data) as other:
        batch = subscription.next_batch()
        assert batch is not None
        subscription.settle(batch.offsets[:3])
        client.ask("settled")

        view = other.ask("subscriptions.show", subscriber="me", topic="t")

        assert isinstance(view, dict)
        assert view["lag"] == 2


@pytest.mark.slow
def test_acks_pass_events_that_the_client_has_yet_to_read(server: LocalServer) -> None:
    """The server reads no more while the client does not read: somebody has to."""
    count = 200_000
    with connect(server.data, timeout_s=10.0) as client:
        client.publish("t", [b"%d" % n for n in range(count)])
        subscription = client.subscribe("t", "me", start="earliest", window=100_000)
        done = 0
        while done < count:
            batch = subscription.next_batch(10.0)
            assert batch is not None
            done += len(batch.offsets)
            subscription.settle(batch.offsets)
        subscription.close()
