from __future__ import annotations

import pytest

from penstock.cli.refusal import Refusal


def test_a_refusal_is_one_line_and_its_hint(capsys: pytest.CaptureFixture) -> None:
    Refusal("topic a does not exist", "did you mean b?").show()

    assert capsys.readouterr().err == (
        "error: topic a does not exist\nhint: did you mean b?\n"
    )


def test_a_refusal_may_have_no_hint(capsys: pytest.CaptureFixture) -> None:
    Refusal("no").show()

    assert capsys.readouterr() == ("", "error: no\n")


def test_a_refusal_exits_with_2() -> None:
    assert Refusal("no").exit_code == 2
