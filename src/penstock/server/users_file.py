"""The users file: who may log in, with which password, and to do what.

A line is ``name:password``, the password as in ``penstock.server.password``, or a rule
of such a user as in ``penstock.server.rule_line``, or the quota of one as in
``penstock.server.quota_line``. A user without rules may publish, subscribe and read
everywhere; who may administer may do everything. Empty lines and lines that begin with
``#`` say nothing. User names are
case-insensitive and stored in lower case.

Crash promise: precious. The file is replaced whole or not at all, and only its owner
may read a new one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from penstock.access.grants import Grants, Rule
from penstock.access.quota import NONE, Quota
from penstock.errors import BadUsersFile, InvalidName, InvalidUser
from penstock.files import Files, replace_file
from penstock.server import password as passwords
from penstock.server import quota_line, rule_line
from penstock.server.password import NoPassword, Password
from penstock.server.rule_line import ADMINISTER, LineMeaning

MAX_NAME_BYTES = 256
# A password is hashed whole; more than this is none.
MAX_PASSWORD_BYTES = 1024
NEW_FILE_MODE = 0o600


class UserEntry(NamedTuple):
    password: Password | NoPassword
    grants: Grants

    @property
    def quota(self) -> Quota:
        return self.grants.quota


def read_users(path: Path) -> dict[str, UserEntry]:
    """The users by name; raises BadUsersFile naming the line, or OSError."""
    return _parsed(path, _lines(path))


def set_password(path: Path, name: str, password: str) -> bool:
    """Store a user's password; True if the user is new.

    The file is made if there is none. Other lines stay as they are. Raises
    InvalidUser if name or password cannot be one.
    """
    name = user_name(name)
    _check_password(name, password)
    return _set(path, name, passwords.stored(password))


def set_certificate(path: Path, name: str) -> bool:
    """Let a user log in by a certificate only; True if the user is new.

    Otherwise as ``set_password``.
    """
    return _set(path, user_name(name), NoPassword())


def _set(path: Path, name: str, stored: Password | NoPassword) -> bool:
    lines = _lines(path) if path.exists() else []
    is_new = name not in _parsed(path, lines)
    line = f"{name}:{stored}"
    if is_new:
        lines.append(line)
    else:
        lines = [line if _is_of(other, name) else other for other in lines]
    _replace(path, lines)
    return is_new


def set_rules(
    path: Path,
    name: str,
    rules: Iterable[Rule] | None,
    *,
    admin: bool | None = None,
) -> None:
    """Store what a user may do in place of what it was; None is to have no rules.

    ``admin``: whether to administer as well; None: as it is. Other lines stay as they
    are. Raises InvalidUser if there is no such user.
    """
    name = user_name(name)
    lines = _lines(path)
    known = _parsed(path, lines).get(name)
    if known is None:
        raise InvalidUser(name, "there is no such user in the file")
    wanted: list[LineMeaning] = [] if rules is None else list(dict.fromkeys(rules))
    if rules is not None and not wanted:
        wanted = [None]
    if known.grants.admin if admin is None else admin:
        wanted.insert(0, ADMINISTER)
    kept = [one for one in lines if _name_of(one) != name or not rule_line.is_rule(one)]
    place = next(at for at, one in enumerate(kept) if _is_of(one, name)) + 1
    kept[place:place] = [rule_line.rendered(name, rule) for rule in wanted]
    _replace(path, kept)


def set_quota(path: Path, name: str, quota: Quota) -> None:
    """Store what a user may have at most in place of what it was.

    Other lines stay as they are. Raises InvalidUser if there is no such user.
    """
    name = user_name(name)
    lines = _lines(path)
    if name not in _parsed(path, lines):
        raise InvalidUser(name, "there is no such user in the file")
    kept = [
        one for one in lines if _name_of(one) != name or not quota_line.is_quota(one)
    ]
    place = next(at for at, one in enumerate(kept) if _is_of(one, name)) + 1
    if quota != NONE:
        kept.insert(place, quota_line.rendered(name, quota))
    _replace(path, kept)


def remove_user(path: Path, name: str) -> bool:
    """Take a user and the rules out of the file; False if there is none so named."""
    lines = _lines(path)
    if name.lower() not in _parsed(path, lines):
        return False
    _replace(path, [line for line in lines if _name_of(line) != name.lower()])
    return True


def user_name(text: str) -> str:
    """``text`` as a user name, in lower case; raises InvalidUser if it is none."""
    name = text.lower()
    if not name:
        raise InvalidUser(text, "the name is empty")
    if ":" in name or name.startswith("#"):
        raise InvalidUser(text, "the name has a ':', or begins with '#'")
    if " " in name or not name.isprintable():
        raise InvalidUser(text, "the name has white space or control characters")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidUser(text, f"the name has more than {MAX_NAME_BYTES} bytes")
    return name


def _check_password(name: str, password: str) -> None:
    if not password:
        raise InvalidUser(name, "the password is empty")
    if not password.isprintable():
        raise InvalidUser(name, "the password has control characters")
    if password != password.strip():
        raise InvalidUser(name, "the password begins or ends with white space")
    if len(password.encode()) > MAX_PASSWORD_BYTES:
        limit = f"more than {MAX_PASSWORD_BYTES} bytes"
        raise InvalidUser(name, f"the password has {limit}")


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadUsersFile(str(path), line, "is not UTF-8 text") from None
    # Not splitlines(), which ends a line at characters that are none of ours.
    return text.removesuffix("\n").split("\n") if text else []


def _parsed(path: Path, lines: list[str]) -> dict[str, UserEntry]:
    found: dict[str, Password | NoPassword] = {}
    rules: dict[str, list[Rule]] = {}
    quotas: dict[str, Quota] = {}
    admins: set[str] = set()
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not _says_something(line):
            continue
        try:
            if rule_line.is_rule(line):
                name, rule = _rule_of(line)
                first.setdefault(name, number)
                if rule == ADMINISTER:
                    admins.add(name)
                else:
                    mine = rules.setdefault(name, [])
                    mine.extend([rule] if isinstance(rule, Rule) else [])
                continue
            if quota_line.is_quota(line):
                name, quota = quota_line.parse(line)
                name = user_name(name)
                if quotas.setdefault(name, quota) is not quota:
                    raise ValueError(f"user {name} has a quota already")
                first.setdefault(name, number)
                continue
            name, password = _user_of(line)
        except (ValueError, InvalidName) as error:
            raise BadUsersFile(str(path), number, str(error)) from error
        except InvalidUser as error:
            raise BadUsersFile(str(path), number, error.reason) from error
        if name in found:
            raise BadUsersFile(str(path), number, f"user {name} is there already")
        found[name] = password
    for name, number in first.items():
        if name not in found:
            raise BadUsersFile(str(path), number, f"there is no user {name}")
    return {
        name: UserEntry(
            password,
            Grants(
                user=name,
                rules=None if name not in rules else tuple(rules[name]),
                admin=name in admins,
                quota=quotas.get(name, NONE),
            ),
        )
        for name, password in found.items()
    }


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _user_of(line: str) -> tuple[str, Password | NoPassword]:
    name, colon, password = line.strip().partition(":")
    if not colon:
        raise ValueError("there is no ':' between name and password")
    return user_name(name), passwords.parse(password)


def _rule_of(line: str) -> tuple[str, LineMeaning]:
    name, rule = rule_line.parse(line)
    return user_name(name), rule


def _name_of(line: str) -> str:
    """The user of a line, or nothing."""
    if not _says_something(line):
        return ""
    if rule_line.is_rule(line) or quota_line.is_quota(line):
        return line.split(maxsplit=1)[0].lower()
    return line.strip().partition(":")[0].lower()


def _is_of(line: str, name: str) -> bool:
    """Whether a line is the user's with the password."""
    beside = rule_line.is_rule(line) or quota_line.is_quota(line)
    return _name_of(line) == name and not beside


def _replace(path: Path, lines: list[str]) -> None:
    """Write the file anew, behind a link if it is one, for the same readers."""
    target = path.resolve()
    data = "".join(f"{line}\n" for line in lines).encode()
    replace_file(_PrivateFiles(target), str(target), data)


class _PrivateFiles(Files):
    """Files that are made with the owner and mode of another, or for us alone."""

    def __init__(self, like: Path) -> None:
        self._like = like

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, NEW_FILE_MODE)
        os.fchmod(handle, NEW_FILE_MODE)
        if self._like.exists():
            status = self._like.stat()
            # Only root may give a file to another account.
            with contextlib.suppress(PermissionError):
                os.fchown(handle, status.st_uid, status.st_gid)
            os.fchmod(handle, status.st_mode & 0o777)
        return handle
