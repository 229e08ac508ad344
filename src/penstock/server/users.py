"""Who may log in, and what they may do: a users file, as it is at this moment."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock

from penstock.access.grants import Grants
from penstock.access.quota import NONE, Quota
from penstock.errors import BadUsersFile
from penstock.files import FileStamp
from penstock.server.rule_line import ADMINISTER
from penstock.server.users_file import UserEntry, read_users

logger = logging.getLogger(__name__)

# Users that a note names.
MAX_NAMED = 10


class Users:
    """Finds users. Follows changes of the file; several threads may use it.

    A file that becomes unusable is reported, and the users stay as they were.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = Lock()
        # The stamp first: a change in between is then seen at the next look.
        self._seen: FileStamp | None = _stamp(self._path)
        self._users = read_users(self._path)
        self._version = 1

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Users:
        """Raises BadUsersFile or OSError if the file cannot be used."""
        return cls(path)

    def warn(self) -> None:
        """Tell the operator what the file says otherwise than it did."""
        for note in notes(self._users):
            logger.warning("%s: %s", self._path, note, extra={"action": "users_rights"})

    def __len__(self) -> int:
        return len(self._users)

    @property
    def version(self) -> int:
        """Another number whenever the file has said something else."""
        self._current()
        return self._version

    def check(self, name: str, password: str) -> Grants | None:
        """What this user may do; None if the password is another one.

        Takes about 50 ms, unless there is no such user: a server asks ``Logins``.
        """
        known = self.find(name)
        right = known is not None and known.password.matches(password)
        return known.grants if known is not None and right else None

    def find(self, name: str) -> UserEntry | None:
        """What the file says of a user now; None if it does not know them."""
        return self._current().get(name.lower())

    def rights_of(self, name: str) -> Grants | None:
        """What a user may do now; None if the file does not know them."""
        known = self.find(name)
        return None if known is None else known.grants

    def quota_of(self, name: str) -> Quota:
        """What the file says of a user now; nothing of one it does not know."""
        known = self.find(name)
        return NONE if known is None else known.grants.quota

    def _current(self) -> dict[str, UserEntry]:
        with self._lock:
            try:
                stamp: FileStamp | None = _stamp(self._path)
            except OSError:
                stamp = None
            if stamp != self._seen:
                self._seen = stamp
                self._read_again()
            return self._users

    def _read_again(self) -> None:
        try:
            self._users = read_users(self._path)
        except (OSError, BadUsersFile) as error:
            logger.error(
                "the users stay as they were: %s",
                error,
                extra={"action": "users_failed", "file": str(self._path)},
            )
            return
        self._version += 1
        logger.info(
            "%s was read again, users: %d",
            self._path,
            len(self._users),
            extra={"action": "users_reloaded", "file": str(self._path)},
        )
        self.warn()


def notes(users: Mapping[str, UserEntry]) -> Iterator[str]:
    """What has to be said of users of a file that was made before there were roles."""
    grants_of_users = {name: user.grants for name, user in users.items()}
    free = sorted(name for name, one in grants_of_users.items() if one.rules is None)
    if free and not any(one.admin for one in grants_of_users.values()):
        named = ", ".join(free[:MAX_NAMED]) + (", …" if len(free) > MAX_NAMED else "")
        yield (
            f"users without rules do not administer any more: {named}; "
            f"'penstock users allow {free[0]} {ADMINISTER}' lets one do so"
        )
    nameless = sum(
        rule.action == "subscribe" and rule.subscribers is None
        for one in grants_of_users.values()
        for rule in one.rules or ()
        if not one.admin
    )
    if nameless:
        yield (
            f"rules that let their users subscribe under any name: {nameless}; "
            "'penstock users allow NAME subscribe FILTER --as SUBSCRIBER' names one"
        )


def _stamp(path: Path) -> FileStamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
