"""The broker, asked now and then; while it is away, what it said last counts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from penstock.client import Client, connect
from penstock.client.address import SECURE, address_of
from penstock.client.tls import Tls
from penstock.errors import ClientError
from penstock.supervisor import topics
from penstock.supervisor.figures import Counted, counted, letters_of
from penstock.supervisor.sums import Sums

# A broker that does not answer is not waited for: there is more to look at.
ANSWER_S = 10.0


class BrokerDesk:
    """``login``: user and password file, if the broker asks for them.

    ``ca_file``: whom to trust, if it speaks TLS.
    """

    def __init__(
        self,
        server: str,
        login: tuple[str, str] | None,
        ca_file: str | None = None,
    ) -> None:
        secure = server.startswith(SECURE)
        self._where = address_of(server, Tls(ca_file=ca_file) if secure else None)
        self.counted = Counted({}, {})
        self._login = login
        self._client: Client | None = None

    def make_topics(self, *, spark: bool) -> None:
        """May be called from another thread. Raises ClientError, OSError."""
        with self._connected() as client:
            topics.make(client, topics.wanted(spark=spark))

    def ask(self) -> None:
        """Look how far topics and subscriptions are."""
        try:
            if self._client is None:
                self._client = self._connected()
            self.counted = counted(self._client)
        except ClientError:
            self.hang_up()

    def wants_stream(self) -> bool:
        """Whether a client has asked for the stream that rests."""
        try:
            if self._client is not None:
                found = cast(dict[str, Any], self._client.ask("pipeline"))
                return bool(found["asked"])
        except ClientError:
            self.hang_up()
        return False

    def look_at(self, sums: Sums) -> None:
        """Let them read on."""
        if self._client is not None:
            try:
                sums.look(self._client, self.counted.topics)
            except ClientError:
                self.hang_up()

    def letters(self, gateway: str) -> int:
        """How many dead letters it has; -1: it is away."""
        try:
            if self._client is not None:
                return letters_of(self._client, gateway)
        except ClientError:
            self.hang_up()
        return -1

    def hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(ClientError):
                client.close()

    def _connected(self) -> Client:
        user = password = None
        if self._login is not None:
            user, file = self._login
            password = Path(file).read_text().partition("\n")[0].rstrip("\r")
        return connect(
            self._where, user=user, password=password, name="up", timeout_s=ANSWER_S
        )
