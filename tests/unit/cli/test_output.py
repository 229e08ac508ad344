from __future__ import annotations

import io
import sys

import pytest

from penstock.cli.output import StandardOutput, write_line


class Reluctant(io.BytesIO):
    """A pipe without a buffer in front: takes three bytes at a time."""

    def write(self, data, /) -> int:
        return super().write(bytes(data[:3]))


def test_a_write_that_takes_a_part_is_continued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = Reluctant()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe))

    StandardOutput().write(b"0123456789")

    assert pipe.getvalue() == b"0123456789"


def test_a_line_ends(capsysbinary: pytest.CaptureFixture) -> None:
    write_line(b"{}")

    assert capsysbinary.readouterr().out == b"{}\n"
