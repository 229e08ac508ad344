from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.completion import SHELLS, VARIABLE
from penstock.cli.main import cli

BASH = shutil.which("bash")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_is_told_how_to_ask(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])

    assert result.exit_code == 0
    assert f"{VARIABLE}={shell}_complete" in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="component: bash (not installed)")
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["penstock", "ser"], ["serve"]),
        (["penstock", "dead-letters", "re"], ["republish"]),
        (["penstock", "sql", "--eng"], ["--engine"]),
    ],
)
def test_bash_completes_what_is_typed(
    tmp_path: Path, typed: list[str], found: list[str]
) -> None:
    program = tmp_path / "penstock"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m penstock.cli.main "$@"\n'
    )
    program.chmod(0o755)
    words = " ".join(f"'{word}'" for word in typed)
    script = f"""
        eval "$(penstock completion bash)"
        COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}
        _penstock_completion penstock
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    run = subprocess.run(
        [BASH or "bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )

    assert run.stdout.split() == found, run.stderr
