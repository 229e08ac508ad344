"""What a message costs, counted: connections share what one has for itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.gathering import Gathering
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.options import MqttOptions
from penstock.log import Log, rows
from penstock.log.commit import Commit
from penstock.server.connection import Connection
from penstock.server.engine import Engine
from penstock.wire.mqtt import (
    Connect,
    PacketKind,
    Publishes,
    RequestedFilter,
    SubscribePacket,
    connack,
    render_acks,
    render_connect,
    render_publish,
    render_subscribe,
    suback,
)
from tests.unit.server.scene import Client, House, house, run

CONNECTIONS = 100
ROUNDS = 3
# Of a message: what is published, and the answers to what is delivered.
READS = {0: 1, 1: 2, 2: 3}
# How often a gateway is asked for output meanwhile.
LOOKS = {0: 1, 1: 1, 2: 2}
# A machine that has much to do brings what was sent in parts.
PARTS = 10
COUNTED: dict[str, list[tuple[Any, str]]] = {
    "appends": [(Log, "append"), (Log, "append_rows")],
    "commits": [(Commit, "run")],
    "frames": [(rows, "frame_at")],
    "stored": [(Gathering, "_accept")],
    "turns": [(Engine, "_turn")],
    "reads": [(Connection, "buffer_updated")],
    "looks": [(MqttGateway, "output")],
}


class Counts(Counter[str]):
    """How often something was done since they were cleared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        for name, places in COUNTED.items():
            for owner, method in places:
                monkeypatch.setattr(owner, method, self._counted(name, owner, method))

    def _counted(self, name: str, owner: Any, method: str) -> Callable[..., Any]:
        plain = getattr(owner, method)

        def counted(*args: Any, **how: Any) -> Any:
            self[name] += 1
            return plain(*args, **how)

        return counted


class Device:
    """A client that publishes to a topic of its own, and hears of it."""

    def __init__(self, number: int, qos: int, client: Client) -> None:
        self.topic, self.qos, self.client = f"d/{number}", qos, client
        self.name = f"d{number}"

    async def come(self) -> None:
        await self._ask(
            render_connect(
                Connect(version=4, client_id=self.name, clean_start=True, keep_alive=0)
            ),
            connack(4, 0, False, {}),
        )
        wanted = SubscribePacket(
            packet_id=1, filters=[RequestedFilter(self.topic, self.qos)]
        )
        await self._ask(render_subscribe(4, wanted), suback(4, 1, [self.qos], {}))

    async def _ask(self, data: bytes, answer: bytes) -> None:
        await self.client.send(data)
        assert await self.client.read(len(answer)) == answer

    def publish(self, id_: int) -> bytes:
        return render_publish(
            4,
            Publishes(
                topic=self.topic,
                qos=self.qos,
                retain=False,
                dup=False,
                payloads=[b"x" * 100],
                packet_ids=[id_] if self.qos else None,
            ),
        )


async def come(one: House, count: int, qos: int) -> list[Device]:
    hub = MqttHub(one.broker, MqttOptions(sys_interval_s=0))
    await one.listen(lambda: MqttGateway(hub))
    devices = [Device(number, qos, await one.connect()) for number in range(count)]
    for device in devices:
        await device.come()
    return devices


async def exchange(devices: list[Device], id_: int) -> None:
    """One message of each, to the end of all handshakes."""
    for device in devices:  # before the loop turns: all can be read at once
        device.client.sock.send(device.publish(id_))
    qos = devices[0].qos
    answer = b"" if not qos else render_acks(_ANSWER[qos], [id_])
    await asyncio.gather(
        *(
            device.client.read(len(answer) + len(device.publish(1)))
            for device in devices
        )
    )
    if qos < 2:
        for device in devices if qos else ():
            device.client.sock.send(render_acks(PacketKind.PUBACK, [id_]))
        return
    for device in devices:
        acks = render_acks(PacketKind.PUBREL, [id_])
        device.client.sock.send(acks + render_acks(PacketKind.PUBREC, [id_]))
    await asyncio.gather(*(device.client.read(8) for device in devices))
    for device in devices:
        device.client.sock.send(render_acks(PacketKind.PUBCOMP, [id_]))


_ANSWER = {1: PacketKind.PUBACK, 2: PacketKind.PUBREC}


async def settled(one: House) -> None:
    await one.until(lambda: one.engine.resting and not one.broker.dirty)


def counted(
    folder: Path, counts: Counts, connections: int, qos: int
) -> dict[str, float]:
    """What one round does, on average of some."""
    found: dict[str, float] = {}

    async def scene() -> None:
        async with house(folder) as one:
            devices = await come(one, connections, qos)
            counts.clear()

            async def heard(rounds: int) -> None:
                """All has come that clients had to say."""
                reads = READS[qos] * connections * rounds
                await one.until(lambda: counts["reads"] >= reads)

            await exchange(devices, 1)  # topics are made
            await heard(1)
            one.engine.tick()
            await settled(one)
            before = dict(counts)
            for id_ in range(2, ROUNDS + 2):
                await exchange(devices, id_)
                await heard(id_)
                await settled(one)
            for name in COUNTED:
                found[name] = (counts[name] - before.get(name, 0)) / ROUNDS

    run(scene())
    return found


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_connections_that_can_be_read_at_once_are_one_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qos: int
) -> None:
    counts = Counts(monkeypatch)

    one = counted(tmp_path / "one", counts, 1, qos)
    many = counted(tmp_path / "many", counts, CONNECTIONS, qos)

    # What is done for all of them, and not for each.
    for what in ("appends", "stored", "commits", "frames"):
        assert one[what] == 1, (what, one)
        assert many[what] <= PARTS, (what, many)
    assert many["turns"] <= PARTS * one["turns"], (one, many)
    # What is done for each: as often as for one that is alone.
    for what in ("reads", "looks"):
        assert many[what] / CONNECTIONS <= one[what], (what, one, many)
    # Nothing is asked for output that has none.
    assert one["looks"] <= LOOKS[qos], one
