from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.access.grants import Grants, Rule
from penstock.access.quota import NONE, Quota
from penstock.errors import BadUsersFile, InvalidUser
from penstock.server import password
from penstock.server.users_file import (
    read_users,
    remove_user,
    set_certificate,
    set_password,
    set_quota,
    set_rules,
    user_name,
)

NO_NAME = "the name has a ':', or begins with '#'"
SENSORS = Rule("publish", "sensors/#")
TEMP = Rule("read", "+/temp")

STORED = str(password.Password(n=2, r=1, p=1, salt=b"s" * 16, hash=b"h" * 32))


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password, "COST_N", 2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users"


def test_a_user_is_added_and_found(path: Path) -> None:
    assert set_password(path, "Anna", "geheim")

    users = read_users(path)
    assert list(users) == ["anna"]
    assert users["anna"].password.matches("geheim")


def test_a_password_is_changed_in_its_place(path: Path) -> None:
    set_password(path, "anna", "one")
    set_password(path, "bert", "two")

    assert not set_password(path, "ANNA", "three")

    users = read_users(path)
    assert list(users) == ["anna", "bert"]
    assert users["anna"].password.matches("three")
    assert users["bert"].password.matches("two")


def test_a_user_is_removed(path: Path) -> None:
    set_password(path, "anna", "one")
    set_password(path, "bert", "two")

    assert remove_user(path, "Anna")

    assert list(read_users(path)) == ["bert"]
    assert not remove_user(path, "anna")


def test_a_file_of_before_there_were_rules_lets_everybody_do_everything(
    path: Path,
) -> None:
    path.write_text(f"anna:{STORED}\nbert:{STORED}\n")

    assert [one.grants.rules for one in read_users(path).values()] == [None, None]


def test_rules_are_lines_behind_their_user(path: Path) -> None:
    path.write_text(f"anna:{STORED}\n# the boss\nbert:{STORED}\n")

    set_rules(path, "Anna", [SENSORS, TEMP, SENSORS])

    assert path.read_text() == (
        f"anna:{STORED}\nanna may publish sensors/#\nanna may read +/temp\n"
        f"# the boss\nbert:{STORED}\n"
    )
    users = read_users(path)
    assert users["anna"].grants.rules == (SENSORS, TEMP)
    assert users["anna"].grants.user == "anna"
    assert users["bert"].grants.rules is None


def test_rules_may_stand_anywhere_as_a_person_wrote_them(path: Path) -> None:
    path.write_text(f"  Anna  may  read  a  b/+ \r\nbert:{STORED}\nanna:{STORED}\n")

    assert read_users(path)["anna"].grants.rules == (Rule("read", "a  b/+"),)
    set_rules(path, "anna", [TEMP])
    assert path.read_text() == (f"bert:{STORED}\nanna:{STORED}\nanna may read +/temp\n")


def test_no_rules_is_not_the_same_as_none_that_allow_anything(path: Path) -> None:
    set_password(path, "anna", "one")

    set_rules(path, "anna", [])
    assert read_users(path)["anna"].grants.rules == ()
    assert path.read_text().endswith("\nanna may nothing\n")
    set_rules(path, "anna", None)
    assert read_users(path)["anna"].grants.rules is None
    assert path.read_text().count("\n") == 1


def test_a_new_password_leaves_the_rules_alone(path: Path) -> None:
    set_password(path, "anna", "one")
    set_rules(path, "anna", [SENSORS])

    set_password(path, "anna", "two")

    user = read_users(path)["anna"]
    assert user.password.matches("two")
    assert user.grants.rules == (SENSORS,)


def test_rules_go_with_their_user(path: Path) -> None:
    set_password(path, "anna", "one")
    set_rules(path, "anna", [SENSORS, TEMP])

    remove_user(path, "ANNA")

    assert path.read_text() == ""


def test_rules_of_nobody_are_not_stored(path: Path) -> None:
    set_password(path, "anna", "one")
    before = path.read_text()

    with pytest.raises(InvalidUser, match="there is no such user"):
        set_rules(path, "bert", [SENSORS])

    assert path.read_text() == before


def test_a_user_may_have_any_name_a_rule_could_have(path: Path) -> None:
    for name in ("may", "nothing", "publish"):
        set_password(path, name, "x")
        set_rules(path, name, [SENSORS])

    assert {name: one.grants.rules for name, one in read_users(path).items()} == {
        name: (SENSORS,) for name in ("may", "nothing", "publish")
    }


def test_what_a_person_wrote_beside_users_is_kept(path: Path) -> None:
    path.write_text(f"# ours: all\n\nanna:{STORED}\n  \n#anna:old\nbert:{STORED}")

    remove_user(path, "anna")
    set_password(path, "cora", "x")

    lines = path.read_text().split("\n")
    assert lines[:4] == ["# ours: all", "", "  ", "#anna:old"]
    assert lines[4] == f"bert:{STORED}"
    assert lines[5].startswith("cora:scrypt$2$8$1$")
    assert lines[6:] == [""]


def test_lines_may_end_like_those_of_other_systems(path: Path) -> None:
    path.write_bytes(f"# hi\r\n\r\nAnna:{STORED}\r\n".encode())

    assert list(read_users(path)) == ["anna"]


def test_an_empty_file_has_no_users(path: Path) -> None:
    path.touch()

    assert read_users(path) == {}


def test_a_file_that_is_not_there_is_an_error_but_for_adding(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_users(path)
    with pytest.raises(FileNotFoundError):
        remove_user(path, "anna")


def test_a_new_file_is_for_its_owner_alone(path: Path) -> None:
    set_password(path, "anna", "one")

    assert mode(path) == 0o600


def test_a_file_that_is_there_keeps_its_mode(path: Path) -> None:
    path.touch()
    path.chmod(0o640)

    set_password(path, "anna", "one")

    assert mode(path) == 0o640


def test_what_an_interrupted_change_left_behind_gives_nothing_away(path: Path) -> None:
    left = path.with_name("users.tmp")
    left.write_text("x" * 10_000)
    left.chmod(0o666)

    set_password(path, "anna", "one")

    assert mode(path) == 0o600
    assert list(read_users(path)) == ["anna"]
    assert not left.exists()


def test_a_link_stays_a_link(path: Path) -> None:
    target = path.with_name("real")
    target.touch()
    path.symlink_to(target)

    set_password(path, "anna", "one")

    assert path.is_symlink()
    assert list(read_users(target)) == ["anna"]


def test_a_relative_path_is_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)

    set_password(Path("users"), "anna", "one")

    assert list(read_users(path)) == ["anna"]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("anna", 1, "there is no ':' between name and password"),
        (f"#\nanna:{STORED}\nbert:x", 3, "the password must be scrypt$n$r$p$salt$hash"),
        (f"\n:{STORED}", 2, "the name is empty"),
        (f"an na:{STORED}", 1, "the name has white space or control characters"),
        (f"anna:{STORED}\nANNA:{STORED}", 2, "user anna is there already"),
        (f"anna:{STORED}\x0bbert", 1, "salt and hash must be base64"),
        (f"anna:{STORED}\n\nbert may read a", 3, "there is no user bert"),
        (
            f"anna:{STORED}\nanna may write a",
            2,
            (
                "after may comes publish, subscribe, read and a filter, "
                "or administer or nothing"
            ),
        ),
        (f"anna:{STORED}\nan:na may read a", 2, NO_NAME),
    ],
)
def test_a_malformed_line_is_named(
    path: Path, text: str, line: int, reason: str
) -> None:
    path.write_text(text)

    with pytest.raises(BadUsersFile) as caught:
        read_users(path)

    error = caught.value
    assert (error.file, error.line, error.reason) == (str(path), line, reason)


def test_a_filter_that_cannot_be_one_is_named(path: Path) -> None:
    path.write_text(f"anna:{STORED}\nanna may read a/#/b\n")

    with pytest.raises(BadUsersFile, match=r"line 2: topic filter 'a/#/b' "):
        read_users(path)


def test_bytes_that_are_no_text_are_named(path: Path) -> None:
    path.write_bytes(f"anna:{STORED}\n\n\xff".encode("latin-1"))

    with pytest.raises(BadUsersFile, match="line 3: is not UTF-8 text"):
        read_users(path)


def test_a_malformed_file_is_not_changed(path: Path) -> None:
    path.write_text("rubbish\n")

    with pytest.raises(BadUsersFile):
        set_password(path, "anna", "one")
    with pytest.raises(BadUsersFile):
        remove_user(path, "anna")

    assert path.read_text() == "rubbish\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the name is empty"),
        ("a:b", "the name has a ':', or begins with '#'"),
        ("#a", "the name has a ':', or begins with '#'"),
        ("a b", "the name has white space or control characters"),
        ("a\n", "the name has white space or control characters"),
        ("a\ud800", "the name has white space or control characters"),
        ("é" * 129, "the name has more than 256 bytes"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(
    path: Path, name: str, reason: str
) -> None:
    with pytest.raises(InvalidUser) as caught:
        set_password(path, name, "geheim")

    assert caught.value.reason == reason
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the password is empty"),
        ("a\nb", "the password has control characters"),
        ("\0", "the password has control characters"),
        (" a", "the password begins or ends with white space"),
        ("é" * 513, "the password has more than 1024 bytes"),
    ],
)
def test_a_password_that_cannot_be_one_is_refused(
    path: Path, text: str, reason: str
) -> None:
    with pytest.raises(InvalidUser) as caught:
        set_password(path, "anna", text)

    assert caught.value.reason == reason
    assert text not in str(caught.value) or not text.strip()


@given(st.text(min_size=1, max_size=20))
def test_any_name_that_is_accepted_is_read_back(text: str) -> None:
    try:
        name = user_name(text)
    except InvalidUser:
        return
    assert user_name(name) == name
    assert name == name.strip()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_role_is_a_line_and_no_rule(path: Path) -> None:
    set_password(path, "anna", "geheim")
    set_rules(path, "anna", None, admin=True)

    assert "anna may administer" in path.read_text().splitlines()
    assert read_users(path)["anna"].grants == Grants(user="anna", admin=True)
    # As it is, unless something else is said.
    set_rules(path, "anna", [SENSORS])
    assert read_users(path)["anna"].grants == Grants(
        user="anna", rules=(SENSORS,), admin=True
    )
    set_rules(path, "anna", [SENSORS], admin=False)
    assert read_users(path)["anna"].grants == Grants(user="anna", rules=(SENSORS,))
    assert "administer" not in path.read_text()


def test_a_role_of_nobody_is_named(path: Path) -> None:
    path.write_text("anna may administer\n")

    with pytest.raises(BadUsersFile, match="there is no user anna"):
        read_users(path)


def test_a_file_from_before_there_were_roles_is_read(path: Path) -> None:
    path.write_text(
        f"anna:{STORED}\nbert:{STORED}\nbert may subscribe orders/#\n"
        f"cora:{STORED}\ncora may nothing\n"
    )

    assert {name: one.grants for name, one in read_users(path).items()} == {
        "anna": Grants(user="anna"),
        "bert": Grants(user="bert", rules=(Rule("subscribe", "orders/#"),)),
        "cora": Grants(user="cora", rules=()),
    }


# Quotas


def test_a_quota_is_set_changed_and_taken_away(path: Path) -> None:
    set_password(path, "anna", "one")
    set_password(path, "bert", "two")
    before = path.read_text()

    set_quota(path, "Anna", Quota(topics=3))
    set_quota(path, "anna", Quota(topics=4, stored_bytes=1 << 30))

    lines = path.read_text().splitlines()
    assert lines[1] == "anna has topics=4 stored_bytes=1GiB"
    users = read_users(path)
    assert users["anna"].grants.quota == Quota(topics=4, stored_bytes=1 << 30)
    assert users["bert"].quota == NONE
    set_quota(path, "anna", NONE)
    assert path.read_text() == before


def test_quotas_and_rules_leave_each_other_alone(path: Path) -> None:
    set_password(path, "anna", "one")
    set_rules(path, "anna", [SENSORS])

    set_quota(path, "anna", Quota(topics=3))
    set_rules(path, "anna", [TEMP])
    set_password(path, "anna", "two")
    set_quota(path, "anna", Quota(topics=5))

    anna = read_users(path)["anna"]
    assert (anna.grants.rules, anna.quota) == ((TEMP,), Quota(topics=5))
    assert anna.password.matches("two")
    assert remove_user(path, "anna")
    assert path.read_text() == ""


def test_a_quota_of_nobody_is_refused(path: Path) -> None:
    set_password(path, "anna", "one")

    with pytest.raises(InvalidUser, match="no such user"):
        set_quota(path, "bert", Quota(topics=3))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("bert has topics=1", "there is no user bert"),
        ("anna has topics=1\nanna has topics=1", "user anna has a quota already"),
        ("anna has tropics=1", "tropics is no quota"),
    ],
)
def test_a_quota_that_makes_no_sense_is_named(
    path: Path, lines: str, reason: str
) -> None:
    path.write_text(f"anna:{STORED}\n{lines}\n")

    with pytest.raises(BadUsersFile, match=reason):
        read_users(path)


def test_a_user_may_have_a_certificate_and_no_password(tmp_path: Path) -> None:
    path = tmp_path / "users"

    assert set_certificate(path, "Sensor")
    assert not set_certificate(path, "sensor")

    assert path.read_text() == "sensor:certificate\n"
    assert not read_users(path)["sensor"].password.matches("certificate")
    assert read_users(path)["sensor"] == read_users(path)["sensor"]
    assert not set_password(path, "sensor", "secret")
    assert read_users(path)["sensor"].password.matches("secret")
