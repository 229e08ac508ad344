"""The plans of the desk, carried out by both kinds of brokers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import penstock
from penstock import desk
from penstock.embedded import Domain, Event
from penstock.errors import UnknownDeadLetter
from penstock.testing import CrashDisk


def failing() -> tuple[Domain, list[int]]:
    """A domain that fails with everything but what begins with ``good``."""
    domain, seen = Domain("a"), []

    @domain.on("t", tries=2, backoff_s=0.0)
    async def handle(event: Event[bytes]) -> None:
        seen.append(event.offset)
        if not event.payload.startswith(b"good"):
            raise ValueError(f"bad {event.offset}")

    return domain, seen


def test_an_async_program_looks_after_its_dead_letters() -> None:
    async def run() -> None:
        domain, seen = failing()
        async with penstock.open("/data", files=CrashDisk()) as broker:
            await broker.start(domain)
            await broker.publish_many("t", [b"good", b"bad", b"bad"])
            await broker.wait_until_settled(60)

            only = desk.Filter(subscriber="a")
            rows = await broker.ask(desk.list_all())
            [group] = await broker.ask(desk.groups())
            shown = await broker.ask(desk.show(rows[0].number))
            errors = await broker.ask(desk.errors())
            error = await broker.ask(desk.show_error(errors[0].number))
            await broker.ask(desk.edit(rows[0].number, b"good now", by="me"))
            await broker.ask(desk.drop_all(only, reason="old"))
            await broker.wait_until_settled(60)
            trail = await broker.ask(desk.audit())
            left = await broker.ask(desk.list_all())

        assert [row.offset for row in rows] == [1, 2]
        assert (group.count, group.kind) == (2, "ValueError")
        assert [one.tries for one in shown.failures] == [1, 2]
        assert len(errors) == 4
        assert "bad" in error.traceback
        assert seen[-1] == 1
        assert left == []
        assert len(trail) >= 2

    asyncio.run(run())


def test_a_blocking_program_asks_the_same(tmp_path: Path) -> None:
    domain, _ = failing()
    with penstock.open(tmp_path) as broker:
        broker.start(domain)
        broker.publish("t", b"good")
        broker.wait_until_settled(60)

        [topic] = broker.ask(desk.topics())
        [row] = broker.ask(desk.subscriptions(subscriber="a"))

        assert (topic.name, row.topic) == ("t", "t")
        assert row.lag == 0
        assert broker.ask(desk.subscriptions(topic="nothing")) == []
        with pytest.raises(UnknownDeadLetter):
            broker.ask(desk.show(7))
