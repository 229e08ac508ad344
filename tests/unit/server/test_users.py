from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.access.grants import Grants, Rule
from penstock.errors import BadUsersFile
from penstock.server import password
from penstock.server.users import Users
from penstock.server.users_file import remove_user, set_password, set_rules


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password, "COST_N", 2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    set_password(path, "anna", "geheim")
    return path


@pytest.mark.parametrize(
    ("name", "text", "is_right"),
    [
        ("anna", "geheim", True),
        ("ANNA", "geheim", True),
        ("anna", "Geheim", False),
        ("anna", "", False),
        ("bert", "geheim", False),
        ("bert", "", False),
        ("", "", False),
        ("anna", "x" * 1025, False),
    ],
)
def test_a_user_needs_the_right_password(
    path: Path, name: str, text: str, *, is_right: bool
) -> None:
    found = Users.load(path).check(name, text)

    assert found == (Grants(user="anna") if is_right else None)


def test_what_a_user_may_do_comes_with_the_password(path: Path) -> None:
    rules = (Rule("publish", "sensors/#"),)
    set_rules(path, "anna", rules)
    users = Users.load(path)

    assert users.check("anna", "geheim") == Grants(user="anna", rules=rules)
    assert users.check("anna", "Geheim") is None
    set_rules(path, "anna", ())
    assert users.check("anna", "geheim") == Grants(user="anna", rules=())
    set_rules(path, "anna", None)
    assert users.check("anna", "geheim") == Grants(user="anna")


def test_a_change_has_a_version_of_its_own(path: Path) -> None:
    users = Users.load(path)
    versions = [users.version, users.version]

    set_password(path, "bert", "neu")
    versions.append(users.version)
    path.write_text("rubbish")
    versions.append(users.version)

    assert versions == [versions[0]] * 2 + [versions[2]] * 2
    assert versions[2] != versions[0]


def test_threads_may_check_at_a_time(path: Path) -> None:
    users = Users.load(path)

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(users.check, ["anna", "bert"] * 20, ["geheim"] * 40)

    assert list(found) == [Grants(user="anna"), None] * 20


def test_a_change_of_the_file_counts_at_the_next_check(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "penstock")
    users = Users.load(path)

    set_password(path, "bert", "neu")
    assert users.check("bert", "neu")
    remove_user(path, "anna")
    assert not users.check("anna", "geheim")
    users.check("bert", "neu")

    actions = [vars(record)["action"] for record in caplog.records]
    assert actions == ["users_reloaded", "users_rights"] * 2
    assert len(users) == 1


def test_a_change_in_place_is_seen_by_its_time(path: Path) -> None:
    users = Users.load(path)
    path.write_bytes(path.read_bytes().replace(b"anna", b"ANNE"))
    os.utime(path, ns=(1, 1))

    assert users.check("anne", "geheim")


@pytest.mark.parametrize("harm", ["malformed", "gone"])
def test_a_file_that_becomes_unusable_changes_nothing_and_is_said_once(
    path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    users = Users.load(path)
    before = path.read_bytes()
    if harm == "gone":
        path.unlink()
    else:
        path.write_text("rubbish")

    assert users.check("anna", "geheim")
    assert users.check("anna", "geheim")

    (record,) = caplog.records
    assert vars(record)["action"] == "users_failed"
    assert str(path) in record.getMessage()
    path.write_bytes(before.replace(b"anna", b"bert"))
    assert users.check("bert", "geheim")


def test_a_file_that_is_unusable_at_once_is_an_error(path: Path) -> None:
    path.write_text("rubbish")
    with pytest.raises(BadUsersFile):
        Users.load(path)

    path.unlink()
    with pytest.raises(FileNotFoundError):
        Users.load(path)


OLD = "rules that let their users subscribe under any name: "


@pytest.mark.parametrize(
    ("rules", "admin", "said"),
    [
        (
            None,
            False,
            [
                (
                    "users without rules do not administer any more: anna; "
                    "'penstock users allow anna administer' lets one do so"
                )
            ],
        ),
        (None, True, []),
        ((Rule("publish", "a"), Rule("subscribe", "b", ("*",))), False, []),
        (
            (Rule("subscribe", "a"), Rule("subscribe", "b")),
            False,
            [
                (
                    f"{OLD}2; 'penstock users allow NAME subscribe FILTER "
                    "--as SUBSCRIBER' names one"
                )
            ],
        ),
        ((Rule("subscribe", "a"),), True, []),
    ],
)
def test_what_a_file_says_otherwise_than_it_did_is_told(
    path: Path,
    rules: tuple[Rule, ...] | None,
    admin: bool,
    said: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_rules(path, "anna", rules, admin=admin)

    Users.load(path).warn()

    assert caplog.messages == [f"{path}: {one}" for one in said]
    assert {vars(one)["action"] for one in caplog.records} <= {"users_rights"}


def test_a_long_row_of_users_is_cut(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    line = path.read_text().partition(":")[2]
    path.write_text("".join(f"u{number:02}:{line}" for number in range(30)))

    Users.load(path).warn()

    (message,) = caplog.messages
    assert "u09, …; " in message
    assert "u10" not in message
