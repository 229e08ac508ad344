"""Clients of the HTTP gateway: publishes with dedup ids, and pulls that acknowledge."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from urllib.parse import quote

from penstock.torture.client import LoadClient
from penstock.torture.promise import holds
from penstock.torture.record import LoadRecord, Truth

BATCH = 20
NOT_STORED = ("WriteFailed", "DiskFull")
# A client that breaks off in the middle of a pull gets its events again after that.
ACK_TIMEOUT_S = 1.0


class HttpClient(LoadClient):
    """One request at a time over a connection that stays."""

    port = "http"

    def opened(self) -> None:
        self._buffer = b""
        self._waits = False

    def received(self, data: bytes) -> None:
        self._buffer += data
        head, ends, body = self._buffer.partition(b"\r\n\r\n")
        if not ends:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        holds("content-length" in headers, self.name, head, body)
        length = int(headers["content-length"])
        if len(body) < length:
            return
        self._buffer, self._waits = body[length:], False
        self._answer(lines[0], json.loads(body[:length]))

    def lost(self) -> None:
        self._waits = False

    def post(self, path: str, content: object) -> None:
        body = json.dumps(content).encode()
        head = (
            f"POST {path} HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        self.out += "\r\n".join((*head, "", "")).encode() + body
        self._waits = True

    def _answer(self, status: str, content: Any) -> None:
        if status.startswith("HTTP/1.1 2"):
            self.answered(content)
            return
        holds(content.get("error") in NOT_STORED, self.name, status, content)
        self.refusals += 1

    def answered(self, content: Any) -> None:
        raise NotImplementedError


class HttpPublisher(HttpClient):
    """Publishes batches, each again until it is answered."""

    def __init__(
        self, name: str, topic: str, record: LoadRecord, random: Random
    ) -> None:
        super().__init__(name)
        self.topic = topic
        self.confirmed: dict[str, int] = {}
        self._path = f"/v1/topics/{quote(topic, safe='')}/events"
        self._record = record
        self._random = random
        self._count = 0
        self._batch: list[str] = []

    @property
    def idle(self) -> bool:
        return not self._batch

    def work(self) -> None:
        if self._waits:
            return
        if not self._batch and self._record.may_publish(self.topic):
            size = self._random.randint(1, BATCH)
            numbers = range(self._count, self._count + size)
            self._batch = [f"{self.name}-{number}" for number in numbers]
            self._count += size
        if self._batch:
            self.post(
                self._path, [{"payload": one, "dedup_id": one} for one in self._batch]
            )

    def answered(self, content: Any) -> None:
        for text, offset in zip(self._batch, content["offsets"], strict=True):
            self.confirmed[text] = offset
            self._record.known[self.topic].append(text)
        self._batch = []
        self.facts += 1

    def check(self, truth: Truth) -> None:
        """What was answered is where the answer said, and all of it in order."""
        places = ((offset, text) for text, offset in self.confirmed.items())
        truth.check_places(self.topic, places)
        texts = truth.texts(self.topic)
        own = [text for text in texts if text.startswith(f"{self.name}-")]
        wanted = [f"{self.name}-{number}" for number in range(len(own))]
        holds(own == wanted, self.name, "is out of order")
        holds(len(self.confirmed) <= len(own) <= self._count, self.name, len(own))


class HttpConsumer(HttpClient):
    """Pulls, and acknowledges with the next pull."""

    def __init__(self, name: str, topic: str, record: LoadRecord) -> None:
        super().__init__(name)
        self.topic = topic
        self.subscribed = False
        self.got: dict[int, str] = {}
        self.settled: set[int] = set()
        self.last_text = {topic: ""}
        self._path = f"/v1/subscriptions/{name}/{quote(topic, safe='')}/pull"
        self._record = record
        self._acks: list[int] = []
        """What it has and has not acknowledged."""
        self._asked: list[int] = []
        """What the pull that is under way acknowledges."""
        record.done[topic][name] = 0

    @property
    def idle(self) -> bool:
        return not self._acks

    def work(self) -> None:
        if not self._waits:
            self._asked = list(self._acks)
            # The first one only subscribes; others wait when there is nothing to say.
            wait_s = 1.0 if self.subscribed and not self._acks else 0.0
            pull = {"max": BATCH, "wait_s": wait_s, "ack_timeout_s": ACK_TIMEOUT_S}
            self.post(self._path, pull | {"ack": self._asked})

    def answered(self, content: Any) -> None:
        self.subscribed = True
        if self._asked and content["settled"] == len(self._asked):
            self.settled.update(self._asked)
            self.facts += 1
        # Some may have been too late: they come again.
        self._acks = [one for one in self._acks if one not in self._asked]
        if self.got and not self._acks and not content["events"]:
            self.last_text[self.topic] = self.got[max(self.got)]
        for event in content["events"]:
            offset = event["offset"]
            again = offset in self.settled
            holds(not again, self.name, offset, "came after it was settled")
            self.got[offset] = event["payload"]
            if offset not in self._acks:
                self._acks.append(offset)
        self._record.done[self.topic][self.name] = len(self.got)

    def state(self) -> str:
        return f"{super().state()}, to acknowledge {self._acks}, last {self.last_text}"

    def check(self, truth: Truth) -> None:
        truth.check_places(self.topic, self.got.items())

    def check_all(self, truth: Truth, starts: dict[str, int]) -> None:
        self.check(truth)
        owed = set(range(starts[self.topic], len(truth.topics[self.topic])))
        missing = sorted(owed ^ set(self.got))
        holds(not missing, self.name, "did not get", missing[:5])
