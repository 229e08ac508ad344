"""Passwords as they are stored: salted, and slow on purpose.

    scrypt$<n>$<r>$<p>$<salt>$<hash>      salt and hash in base64

The cost is stored with the hash, so that a later Penstock may raise it and still
check older passwords. In place of one there may be the word ``certificate``: no
password is right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from dataclasses import dataclass

SCHEME = "scrypt"
CERTIFICATE = "certificate"
# About 50 ms and 16 MiB for each check.
COST_N = 1 << 14
COST_R = 8
COST_P = 1
SALT_BYTES = 16
HASH_BYTES = 32
# Bounds on what a users file may ask of the server for one check.
MAX_MEMORY_BYTES = 256 << 20
MAX_P = 16
MAX_HASH_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Password:
    """A stored password."""

    n: int
    r: int
    p: int
    salt: bytes
    hash: bytes

    def matches(self, text: str) -> bool:
        """Whether this is the password. Slow, and safe to call from a thread."""
        found = _scrypt(text, self.salt, self.n, self.r, self.p, len(self.hash))
        return hmac.compare_digest(found, self.hash)

    def __str__(self) -> str:
        salt, hash_ = (base64.b64encode(b).decode() for b in (self.salt, self.hash))
        return "$".join([SCHEME, str(self.n), str(self.r), str(self.p), salt, hash_])


@dataclass(frozen=True, slots=True)
class NoPassword:
    """Of a user whom only a certificate can name."""

    def matches(self, text: str) -> bool:
        """Never; and it takes as long as with a password."""
        _scrypt(text, bytes(SALT_BYTES), COST_N, COST_R, COST_P, HASH_BYTES)
        return False

    def __str__(self) -> str:
        return CERTIFICATE


def stored(text: str) -> Password:
    """The password to store, with a new salt."""
    salt = os.urandom(SALT_BYTES)
    hash_ = _scrypt(text, salt, COST_N, COST_R, COST_P, HASH_BYTES)
    return Password(n=COST_N, r=COST_R, p=COST_P, salt=salt, hash=hash_)


def parse(text: str) -> Password | NoPassword:
    """A stored password from its text; raises ValueError with the reason."""
    if text == CERTIFICATE:
        return NoPassword()
    scheme, *parts = text.split("$")
    if scheme != SCHEME or len(parts) != 5:
        raise ValueError("the password must be scrypt$n$r$p$salt$hash")
    if not all(
        part.isascii() and part.isdigit() and len(part) < 10 for part in parts[:3]
    ):
        raise ValueError("the cost of scrypt must be three numbers: n, r and p")
    n, r, p = map(int, parts[:3])
    _check_cost(n, r, p)
    try:
        salt, hash_ = (base64.b64decode(part, validate=True) for part in parts[3:])
    except (binascii.Error, ValueError):
        raise ValueError("salt and hash must be base64") from None
    if not SALT_BYTES // 2 <= len(salt) <= MAX_HASH_BYTES:
        raise ValueError(f"the salt must have 8 to {MAX_HASH_BYTES} bytes")
    if not HASH_BYTES // 2 <= len(hash_) <= MAX_HASH_BYTES:
        raise ValueError(f"the hash must have 16 to {MAX_HASH_BYTES} bytes")
    return Password(n=n, r=r, p=p, salt=salt, hash=hash_)


def _check_cost(n: int, r: int, p: int) -> None:
    if n < 2 or n & (n - 1):
        raise ValueError(f"n of scrypt is {n}: must be a power of two")
    if not r or 128 * n * r > MAX_MEMORY_BYTES:
        limit = MAX_MEMORY_BYTES // 128
        raise ValueError(f"n times r of scrypt is {n * r}: must be 1 to {limit}")
    if not 1 <= p <= MAX_P:
        raise ValueError(f"p of scrypt is {p}: must be 1 to {MAX_P}")


def _scrypt(text: str, salt: bytes, n: int, r: int, p: int, length: int) -> bytes:
    # What scrypt needs is 128 * r * (n + p + 2); leave some room.
    memory = 128 * r * (n + p + 2) + (1 << 20)
    # Text from a socket may hold what UTF-8 cannot; it is no password of any user.
    secret = text.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=n, r=r, p=p, dklen=length, maxmem=memory)
