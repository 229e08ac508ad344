from __future__ import annotations

from pathlib import Path

from penstock.cli.delayed import DelayedAcks
from penstock.cli.subscribe import LINE_S, RateCounter, show_rates
from penstock.client import connect
from tests.local_server import local_server


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_line_comes_now_and_then() -> None:
    said: list[str] = []
    clock = Clock()
    rates = RateCounter(said.append, clock)

    rates.add(10)
    clock.now_s = LINE_S
    rates.add(10)
    clock.now_s = LINE_S + 0.5
    rates.add(5)
    rates.end()

    assert said == ["20 events, 20/s", "25 events in 1.5 s, 17/s"]


def test_while_nothing_comes_nothing_is_said() -> None:
    said: list[str] = []
    clock = Clock()
    rates = RateCounter(said.append, clock)

    for second in range(1, 100):
        clock.now_s = second * LINE_S
        rates.add(0)
    clock.now_s += LINE_S
    rates.add(10)

    assert said == ["10 events, 10/s"]


def test_events_are_counted_and_acknowledged(tmp_path: Path) -> None:
    said: list[str] = []
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        client.publish("t", [b"1", b"2", b"3", b"4"])
        with client.subscribe("t", "me", start="earliest", window=3) as subscription:
            acks = DelayedAcks(subscription, 0.0)
            show_rates(acks, 3, ack=True, rates=RateCounter(said.append))

        found = client.ask("subscriptions", subscriber="me")

    assert said[-1].startswith("3 events in ")
    assert isinstance(found, dict)
    assert found["subscriptions"][0]["position"] == 3


def test_without_acks_nothing_is_settled(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        client.publish("t", [b"1", b"2"])
        with client.subscribe("t", "me", start="earliest", window=2) as subscription:
            acks = DelayedAcks(subscription, 0.0)
            show_rates(acks, 2, ack=False, rates=RateCounter(lambda _: None))

        found = client.ask("subscriptions", subscriber="me")

    assert isinstance(found, dict)
    assert found["subscriptions"][0]["position"] == 0
