from __future__ import annotations

from pathlib import Path

import pytest

from penstock.client import Client, connect
from penstock.client.lasting import LastingConnection
from penstock.errors import ConnectionLost, ServerRefused
from tests.local_server import local_server


def test_a_line_is_opened_when_it_is_needed_and_again_when_it_was_lost(
    tmp_path: Path,
) -> None:
    opened: list[Client] = []

    with local_server(tmp_path / "data") as server:

        def opener() -> Client:
            opened.append(connect(server.data))
            return opened[-1]

        def once_lost(client: Client) -> object:
            if len(opened) == 1:
                raise ConnectionLost("here", "cut")
            return client.ask("topics")

        with LastingConnection(opener, 60) as line:
            assert opened == []
            assert line.say(once_lost)

    assert len(opened) == 2


def test_what_was_refused_for_good_does_not_stand_in_the_way_of_the_next(
    tmp_path: Path,
) -> None:
    with (
        local_server(tmp_path / "data") as server,
        LastingConnection(lambda: connect(server.data), 0) as line,
    ):
        with pytest.raises(ServerRefused):
            line.say(lambda client: client.ask("topics", x=bytes(65 << 20)))

        assert line.say(lambda client: client.ask("topics"))


def test_patience_ends(tmp_path: Path) -> None:
    def opener() -> Client:
        raise ConnectionLost("here", "cut")

    with LastingConnection(opener, 0) as line, pytest.raises(ConnectionLost):
        line.say(lambda client: client)
