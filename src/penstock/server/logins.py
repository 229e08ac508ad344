"""Logins: every password that any gateway is shown is checked here.

A check is slow on purpose (``password.py``). A few threads do them, and whoever waits
gets its turn (``turns.py``); who has failed too often is told to wait, without a check
(``attempts.py``). A name that no user has needs no check: its answer comes as late as
that of a real one lately, so that time tells nothing, and keeps nobody waiting.

A password that was right a moment ago is right without another check, so that a
thousand clients of one user come back as fast as one.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import NamedTuple

from penstock.broker.access import Grants
from penstock.broker.attempts import TOKENS, Attempts, place_of
from penstock.broker.peer import Peer
from penstock.broker.traffic import Traffic
from penstock.errors import Busy, LoginRefused, PenstockError, TooManyAttempts
from penstock.gateway.gateway import LoginRequest
from penstock.server.login_log import LoginLog
from penstock.server.turns import Key, Turns
from penstock.server.users import Users
from penstock.server.users_file import MAX_NAME_BYTES, MAX_PASSWORD_BYTES, User

# Each check has a core for 50 ms, and 16 MiB.
THREADS = min(4, os.cpu_count() or 1)
# Logins that wait for their turn; half of them from one address.
MAX_WAITING = 2_000
# How much later a wrong password is answered at an address with many of them.
SLOW_S = 1.0
# How long a password that was right need not be checked again, and how many are known.
SHOWN_S = 10.0
MAX_SHOWN = 1_000
# The latest checks, whose time those take that are none; and before the first one.
LATEST = 16
FIRST_S = 0.05

Found = User | Grants | PenstockError
"""Of a login: the user, or what a token allows; or why not: LoginRefused,
TooManyAttempts or Busy."""
Answer = Callable[[Found], None]


class Login(NamedTuple):
    """One that waits for its answer."""

    user: str
    password: str
    peer: Peer
    answer: Answer
    since_s: float

    @property
    def key(self) -> Key:
        return place_of(self.peer.address), self.user[:MAX_NAME_BYTES]


class Logins:
    """``check`` and ``wrong_token`` for everybody; ``tick`` every second; ``close``."""

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
        self._real: Turns[Login] = Turns(MAX_WAITING, THREADS)
        self._made_up: Turns[Login] = Turns(MAX_WAITING)
        self._latest: deque[float] = deque([FIRST_S], LATEST)
        self._secret = os.urandom(32)
        self._shown: dict[bytes, tuple[float, User]] = {}
        self._version = 0 if users is None else users.version
        self._closed = False

    def check(self, request: LoginRequest, answer: Answer, peer: Peer) -> None:
        """Have a password checked; ``answer`` is called in the loop, later."""
        user = request.user.lower()
        login = Login(user, request.password, peer, answer, perf_counter())
        known = self._find(login) is not None
        turns = self._real if known else self._made_up
        refusal = self._refusal(login.key[1], peer, known=known)
        if refusal is None and turns.full(login.key[0]):
            refusal = Busy(MAX_WAITING)
        if refusal is not None:
            self._refuse(login, refusal)
            return
        turns.put(login.key, login)
        if known:
            self._go_on()
        else:
            self._pretend()

    def wrong_token(self, peer: Peer) -> PenstockError:
        """Note that a token was none; what to answer.

        One that is right is never held up: looking it up costs nothing, and nobody
        guesses 32 random bytes.
        """
        refusal = self._refusal(TOKENS, peer, known=True)
        if refusal is None:
            self._attempts.failed(peer.address, TOKENS, self._now_s(), known=True)
        error = refusal or LoginRefused("the token is not known here, or has expired")
        self._note("(a token)", peer, error)
        return error

    def unknown_user(self, name: str, peer: Peer) -> PenstockError:
        """Note that a certificate names nobody of the users file; what to answer."""
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

    def still(self, user: User) -> bool:
        """Whether the users file says the same of somebody who has logged in."""
        return self._users is None or self._users.find(user.grants.user) == user

    def close(self) -> None:
        """Check no more: nobody is left who could need it."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._log.close()

    # Turns

    def _go_on(self) -> None:
        """Begin the checks whose turn it is."""
        while not self._closed and (login := self._real.take()) is not None:
            user = self._find(login)
            refusal = self._refusal(login.key[1], login.peer, known=True)
            if refusal is None and user is not None and not self._has_shown(login):
                self._begin(login, user)
                continue
            self._real.over(login.key)
            if refusal is not None:
                self._refuse(login, refusal)
            elif user is None:  # removed since it came
                self._fail(login, known=True)
            else:
                self._succeed(login, user)

    def _begin(self, login: Login, user: User) -> None:
        future = self._threads.submit(user.password.matches, login.password)
        future.add_done_callback(partial(self._tell, login, user))

    def _tell(self, login: Login, user: User, done: Future[bool]) -> None:
        """In the thread that has checked: let the loop know."""
        with suppress(RuntimeError):  # it ended meanwhile: see ``close``
            self._loop.call_soon_threadsafe(self._checked, login, user, done)

    def _checked(self, login: Login, user: User, done: Future[bool]) -> None:
        if self._closed:  # perhaps it was none: those that wait are cancelled
            return
        self._real.over(login.key)
        self._latest.append(perf_counter() - login.since_s)
        right = not done.cancelled() and done.exception() is None and done.result()
        # The file may have changed meanwhile: what it says now counts.
        now = self._find(login)
        if right and now is not None and now.password == user.password:
            self._remember(login, now)
            self._succeed(login, now)
        else:
            self._fail(login, known=True)
        self._go_on()

    def _pretend(self) -> None:
        """Let those wait for whom there is nothing to check."""
        while (login := self._made_up.take()) is not None:
            refusal = self._refusal(login.key[1], login.peer, known=False)
            if refusal is None:
                delay_s = random.choice(self._latest)
                self._loop.call_later(delay_s, self._pretended, login)
            else:
                self._made_up.over(login.key)
                self._refuse(login, refusal)

    def _pretended(self, login: Login) -> None:
        self._made_up.over(login.key)
        self._fail(login, known=False)
        self._pretend()

    # Answers

    def _succeed(self, login: Login, user: User) -> None:
        self._attempts.succeeded(login.peer.address, login.key[1])
        self._loop.call_soon(self._let_in, login, user)

    def _let_in(self, login: Login, user: User) -> None:
        """What changes from now on is noticed by ``changed``."""
        gone = LoginRefused(f"wrong password for {login.user[:80]}")
        login.answer(user if self.still(user) else gone)

    def _fail(self, login: Login, *, known: bool) -> None:
        address, now_s = login.peer.address, self._now_s()
        self._attempts.failed(address, login.key[1], now_s, known=known)
        error = LoginRefused(f"wrong password for {login.user[:80]}")
        self._note(login.user, login.peer, error)
        slow = self._attempts.suspects(address, now_s)
        self._loop.call_later(SLOW_S if slow else 0, login.answer, error)

    def _refuse(self, login: Login, error: PenstockError) -> None:
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

    def _find(self, login: Login) -> User | None:
        """The user, if there is anything to compare the password with."""
        assert self._users is not None, "gateways ask only if there are users"
        if len(login.password) > MAX_PASSWORD_BYTES:
            return None
        return self._users.find(login.user)

    def _remember(self, login: Login, user: User) -> None:
        if len(self._shown) >= MAX_SHOWN:
            self._shown.clear()
        self._shown[self._digest(login)] = self._now_s() + SHOWN_S, user

    def _has_shown(self, login: Login) -> bool:
        """Whether this password was right a moment ago, and still is."""
        until_s, user = self._shown.get(self._digest(login), (0.0, None))
        return user is not None and until_s > self._now_s() and self.still(user)

    def _digest(self, login: Login) -> bytes:
        said = f"{login.user}\0{login.password}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(said, key=self._secret).digest()
