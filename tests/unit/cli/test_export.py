from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli import export as exporting
from penstock.cli.refusal import Refusal
from penstock.errors import MissingExtra
from penstock.files import Files
from penstock.log import Batch, Columns, frame_of


@pytest.mark.parametrize("format_", exporting.FORMATS)
def test_a_file_appears_when_it_is_whole(
    tmp_path: Path, format_: exporting.Format
) -> None:
    out = tmp_path / "out"
    seen: list[list[str]] = []

    def watched() -> Iterator[Batch]:
        yield batch()
        seen.append([path.name for path in tmp_path.iterdir()])

    exporting.export("t", watched(), format_, str(out))

    assert [name for names in seen for name in names if name == "out"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out.stat().st_size > 0


@pytest.mark.parametrize("format_", exporting.FORMATS)
def test_an_export_that_breaks_off_leaves_the_old_file(
    tmp_path: Path, format_: exporting.Format
) -> None:
    out = tmp_path / "out"
    out.write_text("old")

    def broken() -> Iterator[Batch]:
        yield batch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exporting.export("t", broken(), format_, str(out))

    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Files, "write", full)
    out = tmp_path / "out"

    with pytest.raises(Refusal, match="cannot write .*out: No space left on device"):
        exporting.export("t", [batch()], "jsonl", str(out))

    assert list(tmp_path.iterdir()) == []


def test_a_place_that_does_not_exist_is_a_refusal(tmp_path: Path) -> None:
    out = tmp_path / "missing" / "out"

    with pytest.raises(Refusal, match="No such file or directory"):
        exporting.export("t", [batch()], "jsonl", str(out))


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
def test_binary_formats_do_not_go_to_a_terminal(
    format_: exporting.Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    with pytest.raises(Refusal, match=f"{format_} is binary") as refusal:
        exporting.export("t", [batch()], format_, None)

    assert "--out FILE" in refusal.value.hint


def test_without_arrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "penstock.log.arrow", raising=False)
    monkeypatch.delattr("penstock.log.arrow", raising=False)

    with pytest.raises(MissingExtra, match=r"pip install 'penstock\[arrow\]'"):
        exporting.export("t", [batch()], "parquet", str(tmp_path / "out"))

    assert list(tmp_path.iterdir()) == []


def test_a_bar_is_drawn_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    quiet = list(exporting.with_progress([batch()], 2))
    silence = capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    drawn = list(exporting.with_progress([batch()], 2))

    assert len(quiet) == len(drawn) == 1
    assert silence == ""
    assert "exporting" in capsys.readouterr().err


def batch() -> Batch:
    return Batch.of("t", frame_of(Columns([b"1", b"2"], 5), 0, bytes(16)))
