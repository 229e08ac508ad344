"""Logins: every password that any gateway is shown is checked here.

A check is slow on purpose (``password.py``). A few threads do them, and a client that
waits gets its turn (``turns.py``); one that has failed too often is told to wait,
without a check (``access/attempts.py``). A name that no user has needs no check, and
keeps no client waiting: it gets its turn when a real one would, which takes as long as
a check lately took, so that time tells nothing.

A password that was right a moment ago is right without another check, so that a
thousand clients of one user come back as fast as one.

Failed logins are logged once per address at once, and what follows within a minute as
one line at its end. Addresses beyond so many share a line.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import NamedTuple

from penstock.access.attempts import TOKENS, WINDOW_S, Attempts, place_of
from penstock.access.grants import Grants
from penstock.access.peer import Peer
from penstock.broker.traffic import Traffic
from penstock.errors import Busy, LoginRefused, PenstockError, TooManyAttempts
from penstock.gateway.gateway import LoginRequest
from penstock.server.password import NoPassword, Password
from penstock.server.turns import TurnKey, Turns
from penstock.server.users import Users
from penstock.server.users_file import MAX_NAME_BYTES, MAX_PASSWORD_BYTES, UserEntry

logger = logging.getLogger(__name__)

# Addresses that have lines of their own.
MAX_ADDRESSES = 50
# User names that a line has, and characters of each.
MAX_NAMES = 5
MAX_CHARACTERS = 80
OTHERS = "other addresses"


class LoginLog:
    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def failed(self, user: str, address: str, gateway: str, now_s: float) -> None:
        """One more."""
        if address not in self._tallies and len(self._tallies) >= MAX_ADDRESSES:
            address = OTHERS
        tally = self._tallies.get(address)
        if tally is not None:
            tally.add(user, gateway)
            return
        self._tallies[address] = _Tally(now_s)
        logger.warning(
            "a login over %s as %r from %s has failed",
            gateway,
            user[:MAX_CHARACTERS],
            address,
            extra={"action": "login_failed", "peer": address, "count": 1},
        )

    def tick(self, now_s: float) -> None:
        """Say what a minute has brought; called every second."""
        for address, tally in list(self._tallies.items()):
            if 0 <= now_s - tally.since_s < WINDOW_S:
                continue
            if tally.count:
                self._say(address, tally)
                self._tallies[address] = _Tally(now_s)
            else:
                del self._tallies[address]

    def close(self) -> None:
        """Say what is left."""
        for address, tally in self._tallies.items():
            if tally.count:
                self._say(address, tally)
        self._tallies.clear()

    def _say(self, address: str, tally: _Tally) -> None:
        logger.warning(
            "%d more logins over %s from %s have failed within a minute, as %s",
            tally.count,
            ", ".join(sorted(tally.gateways)),
            address,
            tally.names,
            extra={"action": "login_failed", "peer": address, "count": tally.count},
        )


class _Tally:
    """What came from an address since its last line."""

    __slots__ = ("_names", "count", "gateways", "since_s")

    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        self.count = 0
        self.gateways: set[str] = set()
        self._names: dict[str, None] = {}

    def add(self, user: str, gateway: str) -> None:
        self.count += 1
        self.gateways.add(gateway)
        if len(self._names) <= MAX_NAMES:  # one more tells that there are others
            self._names[user[:MAX_CHARACTERS]] = None

    @property
    def names(self) -> str:
        shown = ", ".join(repr(name) for name in list(self._names)[:MAX_NAMES])
        return f"{shown} and others" if len(self._names) > MAX_NAMES else shown


# Each check has a core for 50 ms, and 16 MiB.
THREADS = min(4, os.cpu_count() or 1)
# Logins that wait for their turn; half of them from one address.
MAX_WAITING = 2_000
# How much later a wrong password is answered at an address with many of them.
SLOW_S = 1.0
# How long a password that was right need not be checked again, and how many are known.
SHOWN_S = 10.0
MAX_SHOWN = 1_000
# The latest checks, whose time those take that are none.
LATEST = 16

LoginResult = UserEntry | Grants | PenstockError
"""Of a login: the user, or what a token allows; or why not: LoginRefused,
TooManyAttempts or Busy."""
LoginAnswer = Callable[[LoginResult], None]
Then = Callable[[float, Future[bool]], None]
"""Gets how long a check took, without the time that it waited for its turn."""


class WaitingLogin(NamedTuple):
    """One that waits for its answer."""

    user: str
    password: str
    peer: Peer
    answer: LoginAnswer
    known: bool
    """Whether there is something to compare the password with."""

    @property
    def key(self) -> TurnKey:
        return place_of(self.peer.address), self.user[:MAX_NAME_BYTES]


class Logins:
    """``check`` and ``wrong_token`` for all peers; ``tick`` every second; ``close``."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now_s: Callable[[], float],
        traffic: Traffic,
        users: Users | None,
        limit: int,
    ) -> None:
        self._loop = loop
        self._now_s = now_s
        self._traffic = traffic
        self._users = users
        self._attempts = Attempts(limit)
        self._log = LoginLog()
        self._threads = ThreadPoolExecutor(THREADS, "penstock-login")
        self._turns: Turns[WaitingLogin] = Turns(MAX_WAITING, THREADS)
        self._latest: deque[float] = deque((), LATEST)
        self._unmeasured: list[WaitingLogin] = []
        """Made-up ones, until it is known how long a check takes on this machine."""
        self._secret = os.urandom(32)
        self._shown: dict[bytes, tuple[float, UserEntry]] = {}
        self._version = 0 if users is None else users.version
        self._closed = False

    def check(self, request: LoginRequest, answer: LoginAnswer, peer: Peer) -> None:
        """Have a password checked; ``answer`` is called in the loop, later."""
        user = request.user.lower()
        known = self._find(user, request.password) is not None
        login = WaitingLogin(user, request.password, peer, answer, known)
        refusal = self._refusal(login.key[1], peer, known=known)
        if refusal is None and self._turns.full(login.key):
            refusal = Busy(MAX_WAITING)
        if refusal is not None:
            self._refuse(login, refusal)
            return
        self._turns.put(login.key, login, costs=known)
        self._go_on()

    def wrong_token(self, peer: Peer) -> PenstockError:
        """Note that a token was none; what to answer.

        One that is right is never held up: looking it up costs nothing, and 32 random
        bytes cannot be guessed.
        """
        refusal = self._refusal(TOKENS, peer, known=True)
        if refusal is None:
            self._attempts.failed(peer.address, TOKENS, self._now_s(), known=True)
        error = refusal or LoginRefused("the token is not known here, or has expired")
        self._note("(a token)", peer, error)
        return error

    def unknown_user(self, name: str, peer: Peer) -> PenstockError:
        """Note that a certificate names no user of the users file; what to answer."""
        error = LoginRefused(f"the certificate's user {name[:80]} is not known here")
        self._note(name, peer, error)
        return error

    def tick(self, now_s: float) -> None:
        """What time brings; called every second."""
        self._log.tick(now_s)
        self._shown = {
            key: shown for key, shown in self._shown.items() if shown[0] > now_s
        }

    def changed(self) -> bool:
        """Whether the users file says something else than at the last call."""
        before = self._version
        self._version = 0 if self._users is None else self._users.version
        return self._version != before

    def still(self, user: UserEntry) -> bool:
        """Whether the users file says the same of a user who has logged in."""
        return self._users is None or self._users.find(user.grants.user) == user

    def close(self) -> None:
        """Check no more: no client is left that could need it."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._log.close()

    # Turns

    def _go_on(self) -> None:
        """Begin what is next."""
        while not self._closed and (login := self._turns.take()) is not None:
            refusal = self._refusal(login.key[1], login.peer, known=login.known)
            user = self._find(login.user, login.password)
            if refusal is None and not login.known:
                self._pretend(login)
                continue
            if refusal is None and user is not None and not self._has_shown(login):
                self._begin(login, user)
                continue
            self._turns.over(login.key)
            if refusal is not None:
                self._refuse(login, refusal)
            elif user is None:  # removed since it came
                self._fail(login)
            else:
                self._succeed(login, user)

    def _begin(self, login: WaitingLogin, user: UserEntry) -> None:
        then = partial(self._checked, login, user)
        self._run(user.password, login.password, then)

    def _run(self, password: Password | NoPassword, text: str, then: Then) -> None:
        """Check in a thread; ``then`` is called in the loop."""
        done = partial(self._tell, then, perf_counter())
        self._threads.submit(password.matches, text).add_done_callback(done)

    def _tell(self, then: Then, since_s: float, done: Future[bool]) -> None:
        """In the thread that has checked: let the loop know."""
        took_s = perf_counter() - since_s
        with suppress(RuntimeError):  # it ended meanwhile: see ``close``
            self._loop.call_soon_threadsafe(then, took_s, done)

    def _checked(
        self, login: WaitingLogin, user: UserEntry, took_s: float, done: Future[bool]
    ) -> None:
        if self._closed:  # perhaps it was none: those that wait are cancelled
            return
        self._turns.over(login.key)
        self._latest.append(took_s)
        right = not done.cancelled() and done.exception() is None and done.result()
        # The file may have changed meanwhile: what it says now counts.
        now = self._find(login.user, login.password)
        if right and now is not None and now.password == user.password:
            self._remember(login, now)
            self._succeed(login, now)
        else:
            self._fail(login)
        self._go_on()

    def _pretend(self, login: WaitingLogin) -> None:
        """Let one wait for whom there is nothing to check."""
        if self._latest:
            self._loop.call_later(random.choice(self._latest), self._pretended, login)
            return
        self._unmeasured.append(login)
        if len(self._unmeasured) == 1:
            self._run(NoPassword(), "", self._measured)

    def _measured(self, took_s: float, done: Future[bool]) -> None:
        self._latest.append(took_s)
        logins, self._unmeasured = self._unmeasured, []
        for login in logins:
            self._pretended(login)

    def _pretended(self, login: WaitingLogin) -> None:
        if self._closed:
            return
        self._turns.over(login.key)
        self._fail(login)
        self._go_on()

    # Answers

    def _succeed(self, login: WaitingLogin, user: UserEntry) -> None:
        self._attempts.succeeded(login.peer.address, login.key[1])
        self._loop.call_soon(self._let_in, login, user)

    def _let_in(self, login: WaitingLogin, user: UserEntry) -> None:
        """What changes from now on is noticed by ``changed``."""
        gone = LoginRefused(f"wrong password for {login.user[:80]}")
        login.answer(user if self.still(user) else gone)

    def _fail(self, login: WaitingLogin) -> None:
        address, now_s = login.peer.address, self._now_s()
        self._attempts.failed(address, login.key[1], now_s, known=login.known)
        error = LoginRefused(f"wrong password for {login.user[:80]}")
        self._note(login.user, login.peer, error)
        slow = self._attempts.suspects(address, now_s)
        self._loop.call_later(SLOW_S if slow else 0, login.answer, error)

    def _refuse(self, login: WaitingLogin, error: PenstockError) -> None:
        self._note(login.user, login.peer, error)
        self._loop.call_soon(login.answer, error)

    def _refusal(self, user: str, peer: Peer, *, known: bool) -> PenstockError | None:
        """Why that login may not be tried now."""
        try:
            self._attempts.check(peer.address, user, self._now_s(), known=known)
        except TooManyAttempts as error:
            return error
        return None

    def _note(self, user: str, peer: Peer, error: PenstockError) -> None:
        wrong = isinstance(error, LoginRefused)
        counts = self._traffic.failed_logins if wrong else self._traffic.refused_logins
        counts[peer.gateway] += 1
        self._log.failed(user, peer.address, peer.gateway, self._now_s())

    # Who it is

    def _find(self, user: str, password: str) -> UserEntry | None:
        """The user, if there is anything to compare the password with."""
        assert self._users is not None, "gateways ask only if there are users"
        if len(password) > MAX_PASSWORD_BYTES:
            return None
        return self._users.find(user)

    def _remember(self, login: WaitingLogin, user: UserEntry) -> None:
        if len(self._shown) >= MAX_SHOWN:
            self._shown.clear()
        self._shown[self._digest(login)] = self._now_s() + SHOWN_S, user

    def _has_shown(self, login: WaitingLogin) -> bool:
        """Whether this password was right a moment ago, and still is."""
        until_s, user = self._shown.get(self._digest(login), (0.0, None))
        return user is not None and until_s > self._now_s() and self.still(user)

    def _digest(self, login: WaitingLogin) -> bytes:
        said = f"{login.user}\0{login.password}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(said, key=self._secret).digest()
