from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from penstock.supervisor.logs import shorten


def test_a_short_log_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    assert not shorten(path, 10)
    path.write_bytes(b"0123456789")

    assert not shorten(path, 10)

    assert [one.name for one in tmp_path.iterdir()] == ["a.log"]


def test_whoever_writes_goes_on_behind_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    writer = "import sys\nfor line in sys.stdin:\n    print(line, end='', flush=True)\n"
    with path.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", writer], stdin=subprocess.PIPE, stdout=log
        )
    assert process.stdin is not None

    for text in (b"first\n", b"second\n"):
        process.stdin.write(text)
        process.stdin.flush()
        while not path.read_bytes():
            assert process.poll() is None
        assert shorten(path, 3)
    process.stdin.write(b"third\n")
    process.stdin.close()
    assert process.wait(30) == 0

    assert path.read_bytes() == b"third\n"
    assert path.with_name("a.log.1").read_bytes() == b"second\n"
