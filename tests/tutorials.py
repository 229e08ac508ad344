"""Pages that are carried out as they are read: files are written, commands typed.

```python shop.py      the block is that file from here on
```console             lines that begin with $ are typed into a shell; what follows
                       has to be printed, where … stands for anything, and a line …
                       for any lines
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and what it has to print."""

    command: str
    printed: str


def play(
    page: Path, folder: Path, environment: dict[str, str], ports: dict[str, int]
) -> int:
    """Carry a page out in a folder; how many commands there were.

    ``ports``: what stands for a port that the page names.
    """
    typed = 0
    written = page.read_text()
    for named, free in ports.items():
        written = written.replace(named, str(free))
    for kind, name, text in _BLOCK.findall(written):
        if kind == "python" and name:
            (folder / name).write_text(text)
        elif kind == "console":
            for step in steps(text):
                _type(step, folder, environment)
                typed += 1
    return typed


def steps(block: str) -> list[Step]:
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert parts[0] == "", "a block begins with a command"
    return [Step(*_split(part)) for part in parts[1:]]


def _split(part: str) -> tuple[str, str]:
    command, _, printed = part.partition("\n")
    return command, printed


def _type(step: Step, folder: Path, environment: dict[str, str]) -> None:
    run = subprocess.run(
        ["bash", "-c", step.command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment,
    )

    assert run.returncode == 0, f"$ {step.command}\n{run.stdout}{run.stderr}"
    said = f"$ {step.command}\n{run.stdout}\n{run.stderr}"
    assert re.fullmatch(pattern(step.printed), run.stdout, re.DOTALL), said


def pattern(printed: str) -> str:
    """What fits a text in which … stands for anything."""
    lines = printed.splitlines()
    return "".join(
        r"(?:.*\n)?" if line == "…" else re.escape(line).replace("…", "[^\n]*") + "\n"
        for line in lines
    )
