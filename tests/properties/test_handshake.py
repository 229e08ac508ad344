"""QoS 2 in both directions: exactly once, whatever the link and the crashes do.

The two ends, the link and the accidents are in handshake_model.py. The last tests
show that these tests bite: let answers go before the disk knows, and they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.delivery import subscriptions
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.delivery.states import OwedState
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.outbox import Outbox
from penstock.wire.jsonq import replies
from tests.effort import effort
from tests.properties.handshake_model import deliver, publish

SEEDS = st.integers(min_value=0, max_value=1 << 32)
STEPS = 250


def check_delivery(seed: int) -> None:
    """Every event reaches the consumer once, in order."""
    received, stored, confirmed = deliver(seed, STEPS)

    assert received == stored, f"seed {seed}"
    assert confirmed <= set(stored), f"seed {seed}"


def check_publishing(seed: int) -> None:
    """Every released message is stored once, and nothing else is."""
    stored, done = publish(seed, STEPS)

    assert len(done) == 30, f"seed {seed}"
    assert sorted(stored) == sorted(done), f"seed {seed}"


@given(seed=SEEDS)
def test_consumer_gets_every_event_exactly_once_and_in_order(seed: int) -> None:
    check_delivery(seed)


@given(seed=SEEDS)
def test_publisher_has_every_message_stored_exactly_once(seed: int) -> None:
    check_publishing(seed)


CHECKS = pytest.mark.parametrize("check", [check_delivery, check_publishing])


def failures(check: Callable[[int], None]) -> Iterator[int]:
    """The seeds of some runs that do not end well."""
    for seed in range(effort(12, 30)):
        try:
            check(seed)
        except AssertionError:
            yield seed


@CHECKS
def test_answers_before_the_disk_knows_break_the_promise(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[int], None]
) -> None:
    def at_once(
        outbox: Outbox[object],
        group: int,
        data: bytes,
        lost: bytes | None = None,
        mark: object = None,
    ) -> None:
        outbox.now(data, mark)

    monkeypatch.setattr(Outbox, "after", at_once)

    assert any(True for _ in failures(check))


def test_a_pubrel_to_a_new_connection_before_the_disk_knows_breaks_the_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_once(
        gateway: JsonConsumerGateway, consumer: Consumer, owed: list[Owed]
    ) -> None:
        for one in owed:
            gateway._outbox.now(replies.pubrel(gateway._msg_id(consumer, one.offset)))

    monkeypatch.setattr(JsonConsumerGateway, "released", at_once)

    assert any(True for _ in failures(check_delivery))


def test_a_broker_that_forgets_pubrecs_in_a_crash_breaks_the_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreleased(owed: Owed) -> tuple[int, int, int, int]:
        return owed.offset, owed.level, owed.tries, OwedState.READY

    monkeypatch.setattr(subscriptions, "_row", unreleased)

    assert any(True for _ in failures(check_delivery))


@CHECKS
def test_with_everything_in_place_the_same_runs_pass(
    check: Callable[[int], None],
) -> None:
    assert list(failures(check)) == []
