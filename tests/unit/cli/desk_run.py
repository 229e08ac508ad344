"""Commands against a server in the test's process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from penstock.cli.main import cli
from penstock.client import Client, connect
from tests.local_server import LocalServer, local_server


class DeskRun:
    """``run`` a command; ``client`` arranges what it works on."""

    def __init__(self, server: LocalServer, client: Client) -> None:
        self.server = server
        self.client = client

    def __call__(self, *arguments: str, input: bytes | None = None) -> Result:
        environment = {"PENSTOCK_DATA": str(self.server.data)}
        return CliRunner().invoke(cli, arguments, input=input, env=environment)

    def lines(self, *arguments: str) -> list[str]:
        """What a command that succeeds prints."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    def refused(self, *arguments: str) -> str:
        """What a command that fails says."""
        result = self(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        return result.stderr

    def ask(self, verb: str, **arguments: Any) -> Any:
        return self.client.ask(verb, **arguments)

    def bury(
        self,
        topic: str,
        subscriber: str,
        *payloads: bytes,
        error: str = "no, thank you",
        kind: str = "",
        traceback: str = "",
    ) -> None:
        """Events that become dead letters of a subscriber."""
        self.client.publish(topic, list(payloads))
        with self.client.subscribe(
            topic, subscriber, start="earliest", tries=1
        ) as subscription:
            for _ in payloads:
                delivery = subscription.next(5.0)
                assert delivery is not None
                subscription.nack(delivery, error, kind=kind, traceback=traceback)


@contextmanager
def desk_run(directory: Path) -> Iterator[DeskRun]:
    with local_server(directory) as server, connect(server.data) as client:
        yield DeskRun(server, client)
