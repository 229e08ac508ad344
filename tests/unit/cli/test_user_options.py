from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.refusal import Refusal
from penstock.cli.user_options import path_of, unknown_user
from penstock.server import password
from penstock.server.users_file import set_password


def test_the_file_is_the_one_that_is_named_or_that_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Refusal, match="there is no users file"):
        path_of(None)

    monkeypatch.setenv("PENSTOCK_SERVER_USERS_FILE", "ours")

    assert path_of(None) == Path("ours")
    assert path_of("mine") == Path("mine")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Anne", "did you mean anna?"), ("xyz", "penstock users list names them all")],
)
def test_somebody_who_is_not_there_may_be_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.setattr(password, "COST_N", 2)
    path = tmp_path / "users"
    set_password(path, "anna", "x")

    refusal = unknown_user(path, name)

    assert refusal.message == f"user {name} is not in {path}"
    assert refusal.hint == hint
