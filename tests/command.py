"""``penstock`` commands in the test's own process: what they print, and their code.

For tests of what a command does. Where its process is what matters (signals, pipes,
what is left after a kill), start one: ``tests.serving.PENSTOCK``.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from penstock.cli.main import cli
from tests.serving import Serving

Run = subprocess.CompletedProcess[bytes]


def penstock(
    *arguments: str,
    input: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str | None] | None = None,
) -> Run:
    """Run a command, with more in its environment; what is None there is not in it."""
    with contextlib.chdir(cwd or Path.cwd()):
        result = CliRunner(catch_exceptions=False).invoke(
            cli, arguments, input, env, prog_name="penstock"
        )
    return Run(arguments, result.exit_code, result.stdout_bytes, result.stderr_bytes)


def command(server: Serving, *arguments: str, input: bytes = b"") -> Run:
    """Run a command that is told of a server's data directory."""
    return penstock(*arguments, input=input, env={"PENSTOCK_DATA": str(server.data)})


def lines(server: Serving, *arguments: str, input: bytes = b"") -> list[str]:
    """What a command prints that does what it is told."""
    result = command(server, *arguments, input=input)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().splitlines()
