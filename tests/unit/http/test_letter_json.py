from __future__ import annotations

from pathlib import Path

import msgspec

from penstock.log import Columns
from penstock.model.failure import Failure
from penstock.model.policy import Policy
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


class Nobody:
    """Takes events, and cannot handle them."""

    def released(self, consumer: object, owed: object) -> None: ...
    def moved(self, consumer: object) -> None: ...
    def ended(self, consumer: object, reason: str) -> None: ...


def test_the_event_of_a_letter_is_json_like_all_events(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            broker, now_s = house.broker, house.clock.now_s()
            broker.create_topic("t")
            subscription = broker.subscribe(
                "me", "t", Policy(tries=1, window=10), "earliest"
            )
            columns = Columns([b'{"a": [1.0]}', b"\xff"], 5, keys=[b"k", b"\xfe"])
            broker.publish("t", columns)
            await house.house.promises.kept(broker.promised)
            consumer = broker.attach(subscription, Nobody())
            broker.take(consumer, now_s, 10)
            for offset in (0, 1):
                failure = Failure(1, 0, "ValueError", "no", "")
                broker.refuse(consumer, offset, failure, now_s, final=True)
            await house.house.promises.kept(broker.promised)

            first = (await house.ask("GET", "/v1/dead-letters/0")).json()
            second = (await house.ask("GET", "/v1/dead-letters/1")).json()

            assert first["subscriber"] == "me"
            assert first["event"]["encoding"] == "json"
            assert first["event"]["payload"] == {"a": [1.0]}
            assert first["event"]["key"] == "k"
            assert first["event"]["topic"] == "t"
            assert second["event"]["encoding"] == "base64"
            assert second["event"]["payload"] == "/w=="
            assert second["event"]["key_encoding"] == "base64"
            body = (await house.ask("GET", "/v1/dead-letters/0")).body
            assert b'{"a": [1.0]}' in body, "as it was published"
            assert msgspec.json.decode(body)["errors"]

    run(scene())
