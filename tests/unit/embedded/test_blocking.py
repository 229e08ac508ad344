"""What every broker with handlers does is in tests/contract; here is the rest."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

import penstock
from penstock import desk
from penstock.embedded import Domain, Event
from penstock.embedded.blocking import LoopThread
from penstock.errors import BrokerClosed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_goes_on_until_a_signal(tmp_path: Path, number: int) -> None:
    domain, seen = Domain("a"), []

    @domain.on("t")
    def handle(event: Event[bytes]) -> None:
        seen.append(event.payload)
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with penstock.open(tmp_path) as broker:
        broker.publish("t", b"x")
        broker.run(domain)
        broker.wait_until_settled(60)

    assert seen == [b"x"]
    assert signal.getsignal(number) is before


def test_run_may_be_in_another_thread(tmp_path: Path) -> None:
    with penstock.open(tmp_path) as broker:
        thread = threading.Thread(target=broker.run)
        thread.start()
        broker.stop()
        thread.join(10)

        assert not thread.is_alive()


def test_sync_handlers_may_use_the_broker(tmp_path: Path) -> None:
    domain, offsets = Domain("a"), []
    with penstock.open(tmp_path) as broker:

        @domain.on("t")
        def handle(event: Event[bytes]) -> None:
            offsets.append(broker.publish("u", b"y").offset)

        broker.publish("t", b"x")
        broker.start(domain)
        broker.wait_until_settled(60)

    assert offsets == [0]


def test_async_handlers_that_would_wait_for_themselves_are_told(tmp_path: Path) -> None:
    domain = Domain("a")
    with penstock.open(tmp_path) as broker:

        @domain.on("t", tries=1)
        async def handle(event: Event[bytes]) -> None:
            broker.publish("u", b"y")

        broker.publish("t", b"x")
        broker.start(domain)
        broker.wait_until_settled(60)
        [letter] = broker.ask(desk.list_all())

    assert "async handler" in letter.reason


def test_many_threads_share_a_broker(tmp_path: Path) -> None:
    with penstock.open(tmp_path) as broker:
        offsets: list[int] = []

        def publish() -> None:
            for _ in range(20):
                offsets.append(broker.publish("t", b"x").offset)

        threads = [threading.Thread(target=publish) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(offsets) == list(range(100))


def test_a_loop_that_was_stopped_runs_nothing() -> None:
    thread = LoopThread()

    async def answer() -> int:
        return 42

    found = thread.wait(answer())
    thread.stop()

    assert found == 42
    with pytest.raises(BrokerClosed):
        thread.wait(answer())


def test_a_closed_broker_says_so(tmp_path: Path) -> None:
    with penstock.open(tmp_path) as broker:
        broker.publish("t", b"x")

    for call in (
        lambda: broker.publish("t", b"y"),
        lambda: broker.start(Domain("a")),
        lambda: broker.ask("topics"),
        broker.wait_until_settled,
    ):
        with pytest.raises(BrokerClosed):
            call()
    broker.close()
