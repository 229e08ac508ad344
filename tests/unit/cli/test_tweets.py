from __future__ import annotations

import socket
import sys

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import cli
from penstock.tweets.generator import Generator


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["tweets", *arguments])


def test_messages_are_printed_as_they_are_sent() -> None:
    result = invoke("print", "--count", "3", "--panic-rate", "0.5")

    generator = Generator(1, 1, panic_rate=0.5, malformed_rate=0.001)
    assert result.exit_code == 0
    assert result.stdout_bytes.splitlines() == generator.batch(1, 3)


def test_any_messages_are_printed() -> None:
    result = invoke(
        *("print", "--count", "2", "--from", "1000", "--stream", "2", "--seed", "9"),
        *("--panic-rate", "0", "--malformed-rate", "0"),
    )

    assert result.stdout_bytes.splitlines() == Generator(9, 2).batch(1000, 2)


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("serve", "--port", str(port))

    assert result.exit_code == 2
    assert result.stderr == f"error: 127.0.0.1:{port}: Address already in use\n"


def test_rates_of_more_than_everything_are_an_error() -> None:
    result = invoke("serve", "--panic-rate", "0.7", "--malformed-rate", "0.7")

    assert result.exit_code == 2
    assert (
        "option panic_rate + malformed_rate is 1.4: must be at most 1" in result.stderr
    )


@pytest.mark.parametrize("text", ["1", "1=x", "=", "3=5"])
def test_a_last_message_that_is_none_is_an_error(text: str) -> None:
    result = invoke("serve", "--last", text)

    assert result.exit_code == 2
    assert "option last is" in result.stderr
    assert "STREAM=N" in result.stderr


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "penstock.tweets.run", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    result = invoke("serve")

    assert result.exit_code == 2
    assert "Tweets needs uvicorn, which is not installed" in result.stderr
    assert "penstock[pipeline]" in result.stderr
