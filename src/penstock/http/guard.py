"""The door: who sends a request, and whether its route is for them.

In this order: ``Authorization: Bearer`` with a token, ``Authorization: Basic`` with a
user of the users file, the cookie of a session, a certificate that names a user, and
where the settings say so, a peer on this machine. What a browser sends by itself (the
cookie, the certificate, or nothing at all) counts only from our own pages: the request
must not come from another site, and a client that changes something by a cookie has to
send the word of the session as well.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from penstock.errors import Forged, LoginRefused
from penstock.http.access import Access, Who
from penstock.http.access import user as user_with
from penstock.http.house import House
from penstock.http.key_file import Key
from penstock.http.keys import who_has
from penstock.http.places import LOCAL, address_in, host_in, networks_in, within
from penstock.http.sessions import COOKIE, CSRF_HEADER, WebSession

# Where the server leaves what it has verified of a client, in the state of a scope.
PEER_CERTIFICATE = "peercert"
# And its place there, as an object that may be told that it is ``known``, or
# ``excused`` while it waits for us.
PLACE = "place"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
ANONYMOUS = Who(name="", scope="topics")
# What a proxy adds to a request that it passes on.
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A client at the door; with a session if a cookie said who it is."""

    who: Who
    session: WebSession | None = None


class Guard:
    def __init__(self, house: House) -> None:
        self._house = house
        self._proxies = networks_in(house.options.proxies)
        public = house.options.public_url
        self._public = None if public is None else urlsplit(public)

    async def enter(self, scope: Scope, access: Access, topic: str | None) -> Visitor:
        """Who it is, if they may have that access.

        Raises LoginRefused, NotAllowed, Forged, TooManyAttempts, Busy.
        """
        if access is Access.NONE:
            return Visitor(who=ANONYMOUS)
        entry = await self.recognise(scope)
        if entry is None:
            raise LoginRefused("a token is needed")
        place = scope.get("state", {}).get(PLACE)
        if place is not None:
            place.known()
        entry.who.need(access, topic)
        return entry

    async def recognise(self, scope: Scope) -> Visitor | None:
        """Who it is; None if nothing says so. Raises as ``enter`` does."""
        headers = Headers(scope=scope)
        if scope["type"] == "websocket":
            self.check_origin(headers)
        said = headers.get("authorization")
        if said is not None:
            return Visitor(who=await self._authorized(said, scope))
        session = self._session(headers)
        if session is not None:
            self._check_page(scope, headers, session)
            return Visitor(who=session.who, session=session)
        named = self._named(scope)
        if named is not None:
            self.check_origin(headers)  # browsers show certificates by themselves
            return Visitor(who=named)
        if self._house.options.open_on_loopback and self._is_local(scope, headers):
            self.check_origin(headers)
            return Visitor(who=Who(name="", scope="open"))
        return None

    async def check_password(self, user: str, password: str, scope: Scope) -> Who:
        """A user of the users file; raises LoginRefused, TooManyAttempts, Busy."""
        check = self._house.check_user
        if check is None:
            raise LoginRefused("this server has no users, but tokens")
        place = scope.get("state", {}).get(PLACE)
        if place is not None:
            place.excused()  # whether or not its body is here: it waits for us
        find = self._house.find_user
        # Before it is checked: what changes meanwhile is noticed later.
        by = None if find is None else find(user)
        grants = await check(user, password, address_of(scope))
        return replace(user_with(grants), by=by)

    def begin(self, token: str, scope: Scope) -> WebSession:
        """Log a browser in by its token; raises LoginRefused, TooManyAttempts."""
        key = self._key(token, scope)
        return self._house.sessions.begin(who_has(key), key)

    def still(self, who: Who, session: WebSession | None = None) -> bool:
        """Whether a client that was let in would be let in now, with that session."""
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
                return who_has(self._key(value.strip(), scope))
            case "basic":
                user, password = _basic(value)
                return await self.check_password(user, password, scope)
            case _:
                raise LoginRefused("Authorization has to be Bearer or Basic")

    def _key(self, token: str, scope: Scope) -> Key:
        house = self._house
        key = house.keys.find(token, int(house.clock.now_s() * 1000))
        if key is None:
            raise house.wrong_token(address_of(scope))
        return key

    def _named(self, scope: Scope) -> Who | None:
        """The user that the peer's certificate names; raises LoginRefused."""
        house, shown = self._house, scope.get("state", {}).get(PEER_CERTIFICATE)
        if not shown or house.vouched is None:
            return None
        grants = house.vouched(shown, address_of(scope))
        if grants is None:
            return None
        by = None if house.find_user is None else house.find_user(grants.user)
        return replace(user_with(grants), by=by)

    def _session(self, headers: Headers) -> WebSession | None:
        cookies = cookie_parser(headers.get("cookie", ""))
        session = self._house.sessions.find(cookies.get(COOKIE, ""))
        if session is None:
            return None
        if not self.still(session.who):
            self._house.sessions.end(session.id)
            return None
        return session

    def _check_page(self, scope: Scope, headers: Headers, session: WebSession) -> None:
        self.check_origin(headers)
        unsafe = scope["type"] == "http" and scope["method"] not in SAFE
        if unsafe and session.forged(headers.get(CSRF_HEADER)):
            raise Forged("X-CSRF-Token is not the one of this session")

    def _is_local(self, scope: Scope, headers: Headers) -> bool:
        """Whether peer and name are this machine's, and no proxy is between.

        The name too: another site may have its name resolved to this machine.
        """
        peer, host = address_of(scope), headers.get("host", "")
        found, name = address_in(peer), host_in(host)
        if found is None or within(found, self._proxies):
            return False
        if not found.is_loopback or any(one in headers for one in FORWARDED):
            return False
        here = address_in(name)
        return name == LOCAL or (here is not None and here.is_loopback)

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
