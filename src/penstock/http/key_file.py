"""The file of tokens: names, scopes and salted hashes, never the tokens themselves.

    {"version": 1, "tokens": [{"name": …, "scope": …, "salt": …, "hash": …, …}]}

A token is random and long, so one round of SHA-256 over salt and token is enough: there
is nothing to guess. The token ``admin`` is also kept as it is, in a file of its own,
which only its owner may read, so that ``penstock token`` can show it.

Crash promise: precious. The file is replaced whole or not at all. Several processes may
change it: each holds a lock while it reads, changes and replaces.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from penstock.errors import BadTokenFile, InvalidToken, UnknownToken
from penstock.files import Files, replace_file

TOKENS = "http-tokens.json"
ADMIN_TOKEN = "http-admin-token"
LOCK = "http-tokens.lock"
ADMIN = "admin"
VERSION = 1
PREFIX = "pk_"
SECRET_BYTES = 32
SALT_BYTES = 16
MODE = 0o600

MAX_NAME_BYTES = 200
MAX_PATTERNS = 1000
# Each of them may have to be compared with a token that is not known.
MAX_TOKENS = 1000

DAY_MS = 24 * 3600 * 1000
MAX_DAYS = 36_500

KeyScope = Literal["admin", "read", "topics"]


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One token as it is stored; ``expires_ms`` is None if it never does."""

    name: str
    scope: KeyScope
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    salt: bytes
    hash: bytes
    made_ms: int
    expires_ms: int | None = None

    def fits(self, token: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(_hash(self.salt, token), self.hash)

    def expired(self, now_ms: int) -> bool:
        return self.expires_ms is not None and now_ms >= self.expires_ms


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """A token without its secret; ``expires_ms`` None: never."""

    name: str
    scope: KeyScope
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    made_ms: int
    expires_ms: int | None


def row_of(key: Key) -> TokenRow:
    return TokenRow(
        name=key.name,
        scope=key.scope,
        publish=key.publish,
        subscribe=key.subscribe,
        made_ms=key.made_ms,
        expires_ms=key.expires_ms,
    )


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    tokens: list[Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A token to be made; checked when it is."""

    name: str
    scope: KeyScope = "admin"
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    expires_ms: int | None = None

    def check(self) -> None:
        """Raises InvalidToken."""
        if (
            not self.name
            or not self.name.isprintable()
            or self.name.strip() != self.name
        ):
            raise InvalidToken(self.name, "the name has to be printable, and not empty")
        if len(self.name.encode()) > MAX_NAME_BYTES:
            raise InvalidToken(self.name, f"the name has over {MAX_NAME_BYTES} bytes")
        patterns = (*self.publish, *self.subscribe)
        if self.scope != "topics" and patterns:
            raise InvalidToken(self.name, f"scope {self.scope} has no topics to name")
        if self.scope == "topics" and not patterns:
            raise InvalidToken(self.name, "scope topics has to name some topics")
        if len(patterns) > MAX_PATTERNS or not all(patterns):
            raise InvalidToken(
                self.name, f"topics have to be 1 to {MAX_PATTERNS} names"
            )


class KeyFile:
    """The tokens of a data directory, as they are on disk."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory).absolute()
        self.path = self.directory / TOKENS
        self.admin_path = self.directory / ADMIN_TOKEN

    def read(self) -> dict[str, Key]:
        """All tokens by name; raises BadTokenFile, OSError."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        try:
            content = msgspec.json.decode(data, type=_Content)
        except msgspec.MsgspecError as error:
            raise BadTokenFile(str(self.path), str(error)) from None
        if content.version != VERSION:
            reason = f"version {content.version}, not {VERSION}"
            raise BadTokenFile(str(self.path), reason)
        return {key.name: key for key in content.tokens}

    def begin(self, now_ms: int) -> str | None:
        """Make the token ``admin`` if there is no file yet; the token, if so."""
        with self._locked():
            if self.path.exists():
                self._close()
                return None
            return self._put_admin({}, now_ms)

    def _close(self) -> None:
        """Keep others out of files that the operator has copied here, or opened."""
        for path in (self.path, self.admin_path):
            with suppress(FileNotFoundError, PermissionError):
                path.chmod(MODE)

    def add(self, wanted: TokenRequest, now_ms: int) -> str:
        """Make a token; raises InvalidToken if it cannot be, or is there already."""
        wanted.check()
        with self._locked():
            keys = self.read()
            if wanted.name in keys:
                raise InvalidToken(wanted.name, "there is one of that name already")
            if len(keys) >= MAX_TOKENS:
                raise InvalidToken(wanted.name, f"there are {MAX_TOKENS} already")
            token, key = _made(wanted, now_ms)
            self._replace({**keys, key.name: key})
        return token

    def remove(self, name: str) -> Key:
        """Take a token out; raises UnknownToken."""
        with self._locked():
            keys = self.read()
            if name not in keys:
                raise UnknownToken(name)
            removed = keys.pop(name)
            self._replace(keys)
            if name == ADMIN:
                self.admin_path.unlink(missing_ok=True)
        return removed

    def renew(self, now_ms: int) -> str:
        """Make the token ``admin`` anew; the one before is worth nothing any more."""
        with self._locked():
            return self._put_admin(self.read(), now_ms)

    def admin_token(self) -> str | None:
        """The token ``admin``, if it is kept here and still counts."""
        try:
            token = self.admin_path.read_text().strip()
        except FileNotFoundError:
            return None
        key = self.read().get(ADMIN)
        return token if key is not None and key.fits(token) else None

    def _put_admin(self, keys: dict[str, Key], now_ms: int) -> str:
        token, key = _made(TokenRequest(name=ADMIN), now_ms)
        # First what can be shown: shown and not counting, it is made anew by renewing.
        path = str(self.admin_path)
        replace_file(PrivateFiles(), path, f"{token}\n".encode())
        self._replace({**keys, ADMIN: key})
        return token

    def _replace(self, keys: dict[str, Key]) -> None:
        content = _Content(version=VERSION, tokens=list(keys.values()))
        data = msgspec.json.format(msgspec.json.encode(content)) + b"\n"
        replace_file(PrivateFiles(), str(self.path), data)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self.directory / LOCK, flags, MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _made(wanted: TokenRequest, now_ms: int) -> tuple[str, Key]:
    token = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    salt = secrets.token_bytes(SALT_BYTES)
    key = Key(
        name=wanted.name,
        scope=wanted.scope,
        publish=wanted.publish,
        subscribe=wanted.subscribe,
        salt=salt,
        hash=_hash(salt, token),
        made_ms=now_ms,
        expires_ms=wanted.expires_ms,
    )
    return token, key


def _hash(salt: bytes, token: str) -> bytes:
    return hashlib.sha256(salt + token.encode("utf-8", "surrogatepass")).digest()


class PrivateFiles(Files):
    """Files that only their owner may read, from the moment they are there."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, MODE)
        os.fchmod(handle, MODE)
        return handle
