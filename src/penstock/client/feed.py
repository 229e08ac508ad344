"""A feed: what another system sends, in topics once each, with the place it came from.

    with Feed("127.0.0.1:8410", "orders-db", gateway="cdc") as feed:
        source.go_on_from(feed.note)
        for changes, place in source:
            feed.put([Events("orders", changes)], note=place)

The note is stored in one step with the events: after a crash of the program or of the
server both are there, or neither is, so a program that goes on from the note loses
nothing and doubles nothing. A feed has one writer at a time; a second one ends the
first, which is told so (FeedMoved) as soon as it puts something else than the other has
put.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from penstock.client import lasting
from penstock.client.address import ServerAddress
from penstock.client.blocking import Client, connect
from penstock.client.lasting import LastingConnection
from penstock.client.outgoing import Outgoing, StagedEvents
from penstock.errors import FeedMoved, MissingStage

# How long a server may be away.
RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class FeedEvents:
    """Events of one topic; entry ``i`` of a column belongs to payload ``i``."""

    topic: str
    payloads: Sequence[bytes]
    keys: Sequence[bytes | None] | None = None
    ids: Sequence[str | None] | None = None
    headers: Sequence[Mapping[str, str]] | None = None
    priorities: Sequence[int] | None = None


class Feed:
    """Close it, or use it as a context manager."""

    def __init__(
        self,
        address: str | os.PathLike[str] | ServerAddress,
        name: str,
        *,
        gateway: str,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        retry_s: float = RETRY_S,
    ) -> None:
        """Ask how far the feed is. ``gateway`` is what dead letters are filed under.

        Raises NotRunning, ConnectionLost, ServerRefused.
        """

        def opener() -> Client:
            return connect(
                address, user=user, password=password, token=token, name=name
            )

        self.name = name
        self._gateway = gateway
        self._retry_s = retry_s
        self._line = LastingConnection(opener, retry_s)
        last = self._ask("sinks.last", query=name)
        self._epoch = -1 if last["epoch"] is None else int(last["epoch"])
        self.note = str(last["note"])
        """What was put with the last batch; empty if there was none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

    def put(
        self,
        batches: Sequence[FeedEvents],
        *,
        note: str,
        letters: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Store events, the note, and as dead letters what made no sense: all at once.

        It is on disk when this returns, and once, whatever went down meanwhile. A note
        is never given twice. Raises FeedMoved, ServerRefused, NotRunning,
        ConnectionLost; after the last two it may be asked again, and nothing else.
        """
        deadline_s = time.monotonic() + self._retry_s
        while True:
            try:
                done = self._store(batches, note, letters)
                break
            except MissingStage:
                # The server has been restarted meanwhile; but not again and again.
                if time.monotonic() >= deadline_s:
                    raise
                time.sleep(lasting.PAUSE_S)
        if done["note"] != note:
            raise FeedMoved(self.name, str(done["note"]))
        self._epoch += 1
        self.note = note

    def _store(
        self,
        batches: Sequence[FeedEvents],
        note: str,
        letters: Sequence[tuple[str, bytes]],
    ) -> dict[str, Any]:
        epoch, attempt = self._epoch + 1, secrets.randbits(48)
        stages = [
            StagedEvents(
                (self.name, epoch, part, attempt), events.topic, _outgoing(events)
            )
            for part, events in enumerate(batches)
        ]
        commit = {
            "query": self.name,
            "epoch": epoch,
            "parts": [[part, attempt] for part in range(len(batches))],
            "note": note,
            "letters": list(letters),
            "gateway": self._gateway,
        }
        done = self._line.say(lambda client: client.store(stages, commit))
        return cast(dict[str, Any], done)

    def _ask(self, verb: str, **arguments: object) -> dict[str, Any]:
        answer = self._line.say(lambda client: client.ask(verb, **arguments))
        return cast(dict[str, Any], answer)


def _outgoing(events: FeedEvents) -> Outgoing:
    return Outgoing.of(
        events.payloads,
        ids=events.ids,
        keys=events.keys,
        headers=events.headers,
        priorities=events.priorities,
    )
