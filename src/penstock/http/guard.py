"""The door: who sends a request, and whether its route is for them.

In this order: ``Authorization: Bearer`` with a token, ``Authorization: Basic`` with a
user of the users file, the cookie of a session, and where the settings say so, a peer
on this machine. What a browser sends by itself (the cookie, or nothing at all) counts
only from our own pages: the request must not come from another site, and whoever
changes something has to send the word of the session as well.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from penstock.errors import Forged, LoginRefused
from penstock.http.access import Access, Who
from penstock.http.access import user as user_with
from penstock.http.attempts import Attempts
from penstock.http.house import House
from penstock.http.key_file import Key
from penstock.http.keys import who_has
from penstock.http.sessions import COOKIE, CSRF_HEADER, Session

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
NOBODY = Who(name="", scope="topics")
# Checking a password takes 50 ms; who has just shown it need not do so again.
PASSWORD_S = 10.0
MAX_PASSWORDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Somebody at the door; with a session if a cookie said who it is."""

    who: Who
    session: Session | None = None


class Guard:
    def __init__(self, house: House) -> None:
        self._house = house
        self._attempts = Attempts(house.options.login_attempts)
        self._shown: dict[bytes, tuple[float, Who]] = {}
        public = house.options.public_url
        self._public = None if public is None else urlsplit(public)

    async def enter(self, scope: Scope, access: Access, topic: str | None) -> Entry:
        """Who it is, if they may have that access.

        Raises LoginRefused, NotAllowed, Forged, TooManyAttempts.
        """
        if access is Access.NONE:
            return Entry(who=NOBODY)
        entry = await self.recognise(scope)
        if entry is None:
            raise LoginRefused("a token is needed")
        entry.who.need(access, topic)
        return entry

    async def recognise(self, scope: Scope) -> Entry | None:
        """Who it is; None if nobody says so. Raises as ``enter`` does."""
        headers = Headers(scope=scope)
        if scope["type"] == "websocket":
            self.check_origin(headers)
        said = headers.get("authorization")
        if said is not None:
            return Entry(who=await self._authorized(said, scope))
        session = self._session(headers)
        if session is not None:
            self._check_page(scope, headers, session)
            return Entry(who=session.who, session=session)
        if self._house.options.open_on_loopback and _is_local(scope, headers):
            self.check_origin(headers)
            return Entry(who=Who(name="", scope="open"))
        return None

    async def check_password(self, user: str, password: str, scope: Scope) -> Who:
        """A user of the users file; raises LoginRefused, TooManyAttempts."""
        check = self._house.check_user
        if check is None:
            raise LoginRefused("this server has no users, but tokens")
        now_s = self._house.clock.now_s()
        shown = hashlib.sha256(f"{user.lower()}\0{password}".encode()).digest()
        until_s, who = self._shown.get(shown, (0.0, NOBODY))
        if until_s > now_s and self.still(who):
            return who
        address = address_of(scope)
        self._attempts.check(address, now_s)
        # Before it is checked: many may ask at once.
        self._attempts.failed(address, now_s)
        find = self._house.find_user
        # Before it is checked: what changes meanwhile is noticed later.
        by = None if find is None else find(user)
        grants = await check(user, password)
        if grants is None:
            raise LoginRefused(f"wrong password for {user[:80]}")
        who = replace(user_with(grants), by=by)
        self._attempts.forgive(address)
        if len(self._shown) >= MAX_PASSWORDS:
            self._shown.clear()
        self._shown[shown] = now_s + PASSWORD_S, who
        return who

    def begin(self, token: str, scope: Scope) -> Session:
        """Log a browser in by its token; raises LoginRefused, TooManyAttempts."""
        house, address = self._house, address_of(scope)
        now_s = house.clock.now_s()
        self._attempts.check(address, now_s)
        key = house.keys.find(token, int(now_s * 1000))
        if key is None:
            self._attempts.failed(address, now_s)
            raise LoginRefused("the token is not known here, or has expired")
        return house.sessions.begin(who_has(key), key)

    def still(self, who: Who, session: Session | None = None) -> bool:
        """Whether somebody who was let in would be let in now, with that session."""
        house = self._house
        if session is not None and not house.sessions.has(session):
            return False
        if isinstance(who.by, Key):
            return house.keys.still(who.by, int(house.clock.now_s() * 1000))
        if who.by is None or house.find_user is None:
            return True
        return house.find_user(who.name) == who.by

    def check_origin(self, headers: Headers) -> None:
        """A page that sends this has to be our own; raises Forged."""
        site = headers.get("sec-fetch-site")
        if site not in (None, "same-origin", "none"):
            raise Forged(f"it comes from another site (Sec-Fetch-Site: {site[:40]})")
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, headers.get("host", "")):
            raise Forged(f"it comes from a page of {origin[:80]}")

    @property
    def secure(self) -> bool:
        """Whether browsers come by TLS."""
        return self._public is not None and self._public.scheme == "https"

    async def _authorized(self, said: str, scope: Scope) -> Who:
        scheme, _, value = said.partition(" ")
        match scheme.lower():
            case "bearer":
                now_ms = int(self._house.clock.now_s() * 1000)
                key = self._house.keys.find(value.strip(), now_ms)
                if key is None:
                    raise LoginRefused("the token is not known here, or has expired")
                return who_has(key)
            case "basic":
                user, password = _basic(value)
                return await self.check_password(user, password, scope)
            case _:
                raise LoginRefused("Authorization has to be Bearer or Basic")

    def _session(self, headers: Headers) -> Session | None:
        cookies = cookie_parser(headers.get("cookie", ""))
        session = self._house.sessions.find(cookies.get(COOKIE, ""))
        if session is None:
            return None
        if not self.still(session.who):
            self._house.sessions.end(session.id)
            return None
        return session

    def _check_page(self, scope: Scope, headers: Headers, session: Session) -> None:
        self.check_origin(headers)
        unsafe = scope["type"] == "http" and scope["method"] not in SAFE
        if unsafe and session.forged(headers.get(CSRF_HEADER)):
            raise Forged("X-CSRF-Token is not the one of this session")

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return False
        if parts.netloc.lower() == host.lower():
            return True
        public = self._public
        return public is not None and (parts.scheme, parts.netloc.lower()) == (
            public.scheme,
            public.netloc.lower(),
        )


def address_of(scope: Scope) -> str:
    """Where the peer is."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _basic(value: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        raise LoginRefused("Authorization: Basic has to be base64") from None
    user, colon, password = text.partition(":")
    if not colon:
        raise LoginRefused("Authorization: Basic has to be user:password")
    return user, password


def _is_local(scope: Scope, headers: Headers) -> bool:
    """Whether peer and name are this machine's.

    The name too: another site may have its name resolved to this machine.
    """
    try:
        if not ipaddress.ip_address(address_of(scope).split("%")[0]).is_loopback:
            return False
        name = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
