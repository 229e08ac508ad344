"""A running broker with its dashboard, and what tests do to it besides clicking.

A real ``penstock serve`` in a directory of its own on free ports; requests by the HTTP
API with the admin token; programs with handlers, as processes of their own.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.serving import Serving

SHOP = Path(__file__).with_name("shop.py")
PATIENCE_S = 30.0

Value = TypeVar("Value")


class Site:
    """The address, the token, and the API."""

    def __init__(self, server: Serving) -> None:
        self.server = server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.ports['http']}"

    @property
    def native_url(self) -> str:
        return f"penstock://127.0.0.1:{self.server.ports['native']}"

    @property
    def token(self) -> str:
        return (self.server.data / "http-admin-token").read_text().strip()

    def ask(self, path: str, body: object = None, *, method: str | None = None) -> Any:
        """A request of the API, ``path`` behind ``/v1``; raises HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/v1{path}",
            data,
            {
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
            },
            method=method or ("GET" if body is None else "POST"),
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            error.add_note(error.read().decode(errors="replace"))
            raise

    def make_topic(self, name: str) -> None:
        """Make a topic, unless it is there."""
        try:
            self.ask("/topics", {"name": name})
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise

    def publish(self, topic: str, *payloads: object, **more: object) -> None:
        """Store events, in a topic that is made if need be."""
        self.make_topic(topic)
        path = f"/topics/{quoted(topic)}/events"
        self.ask(path, [{"payload": one, **more} for one in payloads])

    def letters(self, **filter: str) -> list[dict[str, Any]]:
        """Open letters, for instance those of a ``subscriber``."""
        said = urllib.parse.urlencode(filter)
        found: list[dict[str, Any]] = self.ask(f"/dead-letters?{said}")["letters"]
        return found

    def fail(self, subscriber: str, topic: str, error: str, *, many: int = 1) -> None:
        """Have a subscriber take events of a topic and give them up with an error."""
        path = f"/subscriptions/{quoted(subscriber)}/{quoted(topic)}/pull"
        said = {"max": many, "wait_s": 10, "start": "earliest"}
        events = self.ask(path, said)["events"]
        assert events, f"nothing for {subscriber} in {topic}"
        nack = [
            {"offset": one["offset"], "error": error, "final": True} for one in events
        ]
        self.ask(path, {"max": 1, "wait_s": 0, "nack": nack})

    @contextlib.contextmanager
    def shop(self, *arguments: str) -> Iterator[None]:
        """The program shop.py, with its handlers, while the block runs."""
        command = [sys.executable, str(SHOP), self.native_url, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
            try:
                assert program.stdout is not None
                assert program.stdout.readline() == b"started\n"
                yield
            finally:
                program.terminate()
                program.wait(PATIENCE_S)


def quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def eventually(look: Callable[[], Value], of: str = "") -> Value:
    """What a look finds, as soon as it finds something."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"still not so: {of}"
        time.sleep(0.05)
    return found
