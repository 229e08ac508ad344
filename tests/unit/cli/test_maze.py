from __future__ import annotations

import pytest
from click.testing import CliRunner

from penstock.cli import serve as serving
from penstock.cli.main import cli
from penstock.config import Settings


@pytest.mark.parametrize(
    ("arguments", "ports"),
    [
        ([], (9090, 9099)),
        (["1234"], (1234, 9099)),
        (["1234", "0", "--data", "d", "--ready-file", "r"], (1234, 0)),
    ],
)
def test_only_the_maze_is_served_and_its_ports_are_given_by_place(
    arguments: list[str], ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[tuple[Settings, str | None]] = []

    def noted(settings: Settings, ready_file: str | None) -> int:
        run.append((settings, ready_file))
        return 0

    monkeypatch.setattr(serving, "_run", noted)

    result = CliRunner().invoke(cli, ["maze", *arguments])

    ((settings, ready_file),) = run
    listen = settings.listen
    on = {name for name in listen.__slots__ if getattr(listen, name) is not None}
    assert result.exit_code == 0
    assert on == {"maze_event_port", "maze_client_port"}
    assert (listen.maze_event_port, listen.maze_client_port) == ports
    assert (settings.server.data, ready_file) == (
        ("d", "r") if "--data" in arguments else ("penstock-data", None)
    )


@pytest.mark.parametrize("port", ["65536", "nine", "-1"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    result = CliRunner().invoke(cli, ["maze", "--", port])

    assert result.exit_code == 2
    assert port in result.stderr
