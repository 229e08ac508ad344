"""Logins of browsers: a cookie that scripts cannot read, and a word against forgery.

Sessions are in memory: a server that starts again has none. A session ends when it was
not used for ``session_s``, when its token is removed, renewed or expires, when what the
users file says of its user changes, or when the person logs out; that of a user of the
users file ``session_s`` after the login.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from penstock.clock import Clock
from penstock.http.access import Who
from penstock.http.key_file import Key
from penstock.http.options import HttpOptions

COOKIE = "penstock_session"
CSRF_HEADER = "x-csrf-token"
_SECRET_BYTES = 32
# Of a cookie; longer is none of ours.
_MAX_CHARACTERS = 100


@dataclass(slots=True, kw_only=True)
class WebSession:
    """``key`` is None for a user of the users file."""

    id: str
    who: Who
    key: Key | None
    csrf: str
    expires_ms: int

    def forged(self, csrf: str | None) -> bool:
        """Whether a request that changes something does not come from our page."""
        said = (csrf or "").encode("utf-8", "surrogatepass")
        return not hmac.compare_digest(said, self.csrf.encode())


class WebSessions:
    def __init__(self, options: HttpOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._sessions: dict[str, WebSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, who: Who, key: Key | None) -> WebSession:
        """Log a client in; if there are too many, the one unused for longest goes."""
        while len(self._sessions) >= self._options.max_sessions:
            del self._sessions[next(iter(self._sessions))]
        session = WebSession(
            id=secrets.token_urlsafe(_SECRET_BYTES),
            who=who,
            key=key,
            csrf=secrets.token_urlsafe(_SECRET_BYTES),
            expires_ms=self._expiry_ms(),
        )
        self._sessions[session.id] = session
        return session

    def find(self, id_: str) -> WebSession | None:
        """The session of a cookie, which then lasts anew, unless it is a user's."""
        if len(id_) > _MAX_CHARACTERS:
            return None
        session = self._sessions.pop(id_, None)
        if session is None or session.expires_ms <= self._now_ms():
            return None
        if session.key is not None:  # it is not known whether a user may still come
            session.expires_ms = self._expiry_ms()
        self._sessions[id_] = session  # last in the row
        return session

    def has(self, session: WebSession) -> bool:
        """Whether a session has neither ended nor expired; it does not last anew."""
        known = self._sessions.get(session.id)
        return known is session and session.expires_ms > self._now_ms()

    def end(self, id_: str) -> None:
        self._sessions.pop(id_, None)

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)

    def _expiry_ms(self) -> int:
        return self._now_ms() + int(self._options.session_s * 1000)
