"""Whose token it is: the tokens of a data directory, as they are at this moment."""

from __future__ import annotations

import logging

from penstock.access.grants import Grants
from penstock.errors import BadTokenFile
from penstock.files import FileStamp
from penstock.http.access import Who
from penstock.http.key_file import PREFIX, Key, KeyFile, TokenRequest

logger = logging.getLogger(__name__)

# Longer than any token of ours; not worth a hash.
MAX_TOKEN_CHARACTERS = 200
# Tokens that were recognised, so that they are not compared with all there are.
MAX_KNOWN = 4096


class Tokens:
    """Follows changes of the file, which ``penstock token`` makes from outside.

    A file that becomes unusable is reported, and the tokens stay as they were.
    """

    def __init__(self, file: KeyFile) -> None:
        self.file = file
        # The stamp first: a change in between is then seen at the next look.
        self._seen = self._stamp()
        self._keys = file.read()
        self._known: dict[str, str] = {}

    def find(self, token: str, now_ms: int) -> Key | None:
        """The key of a token that counts."""
        if len(token) > MAX_TOKEN_CHARACTERS or not token.startswith(PREFIX):
            return None
        keys = self._current()
        name = self._known.get(token)
        key = keys.get(name) if name is not None else None
        if key is None:
            key = next((one for one in keys.values() if one.fits(token)), None)
            if key is None:
                return None
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[token] = key.name
        return None if key.expired(now_ms) else key

    def still(self, key: Key, now_ms: int) -> bool:
        """Whether a key that was found earlier counts today."""
        return self._current().get(key.name) == key and not key.expired(now_ms)

    def all(self) -> list[Key]:
        return sorted(self._current().values(), key=lambda key: key.name)

    def add(self, wanted: TokenRequest, now_ms: int) -> str:
        """Make a token; raises InvalidToken, OSError."""
        return self.file.add(wanted, now_ms)

    def remove(self, name: str) -> Key:
        """Take a token out; raises UnknownToken, OSError."""
        return self.file.remove(name)

    def _current(self) -> dict[str, Key]:
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            self._read_again()
        return self._keys

    def _read_again(self) -> None:
        try:
            self._keys = self.file.read()
        except (OSError, BadTokenFile) as error:
            logger.error(
                "the tokens stay as they were: %s",
                error,
                extra={"action": "tokens_failed", "file": str(self.file.path)},
            )
            return
        self._known.clear()

    def _stamp(self) -> FileStamp | None:
        try:
            status = self.file.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def who_has(key: Key) -> Who:
    """What a token lets one do."""
    return Who(
        name=key.name,
        scope=key.scope,
        publish=key.publish,
        subscribe=key.subscribe,
        by=key,
    )


def grants_of(key: Key) -> Grants:
    """What a token lets one do where tokens are for administrators: all, or nothing."""
    admin = key.scope == "admin"
    return Grants(admin=admin, rules=None if admin else (), token=key.name, by=key)
