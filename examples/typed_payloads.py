"""Payloads of dataclasses and TypedDicts: nothing else comes to a handler."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from typing import TypedDict

import penstock
from penstock import Context, Domain, Event, Topic, desk, errors


@dataclass
class Reading:
    sensor: str
    celsius: float


class Alarm(TypedDict):
    sensor: str
    text: str


READINGS = Topic("readings", Reading)
ALARMS = Topic("alarms", Alarm)
WATCH = Domain("watch")
DESK = Domain("desk")


@WATCH.on(READINGS, order="strict")
async def look(event: Event[Reading], context: Context) -> None:
    if event.payload.celsius > 60:
        context.publish(ALARMS, Alarm(sensor=event.payload.sensor, text="is too hot"))


@DESK.on(ALARMS)
async def ring(event: Event[Alarm]) -> None:
    print("alarm:", event.payload["sensor"], event.payload["text"])


async def main(directory: str) -> None:
    hot = b'{"sensor": "roof", "celsius": "hot"}'
    async with penstock.open(directory) as broker:
        await broker.publish("readings", hot)  # nobody has said what fits
        await broker.start(WATCH, DESK)
        try:
            await broker.publish("readings", hot)
        except errors.InvalidPayload as error:
            print(error)
        await broker.publish(READINGS, Reading("cellar", 71.0))
        await broker.wait_until_settled(timeout_s=10)
        for letter in await broker.ask(desk.list_all()):
            print("dead letter:", letter.reason)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(directory))
