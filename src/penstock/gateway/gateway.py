"""What the server needs of a protocol: bytes in, bytes out, no I/O.

The server calls ``output`` after every ``receive``, unless the gateway knows better
(``has_output``), and whenever it is in ``broker.awake``. A gateway that has to check a
password sets ``login`` and gets no more input until the server has called
``logged_in``: checking takes a while on purpose and happens elsewhere. What the user
may do is in ``grants`` by then, and the gateway asks it before it publishes, subscribes
or reads for the peer. What may take a while the gateway holds, and is ``busy``: the
server has it ``go_on`` in its turn, and hands it nothing more meanwhile.

What the methods do not say, and a gateway has to do:

- Answers that wait for a commit keep it in ``broker.waiting``: ``output`` ends with
  ``broker.waiting[self] = None`` as long as its Outbox holds any. Otherwise it is not
  asked again when the group is stored, and the peer never hears.
- One that stores batches of several topics before it answers calls ``take_out_failed``
  (broker/publishing.py) for each of them at the end: a group that was full may
  have been written, and have failed, while the next batch was stored.
- One that makes topics out of what peers send bounds how many a turn makes. Gateways of
  lines are HeldLines (held_lines.py), which hold the rest for their next turn.
- One that knows a login takes ``authenticate``; any other is in ``_WITHOUT_LOGIN`` of
  server/ports.py, so that its port is open to this machine only once there are users.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.access.grants import OPEN, Grants
from penstock.errors import PenstockError

# What a connection may hold before its peer has said who it is: any peer can open one.
# A login is a few hundred bytes, a CONNECT with a will a few thousand.
LOGIN_BYTES = 16 << 10


# Lines of one read that are no commands: each earns an answer, which the peer perhaps
# does not read. One that sends more of them at once speaks another language, and is
# closed.
WRONG_LINES = 1_000


class LoginRequest(NamedTuple):
    """A client at the door: a user with a password, or one that has a token."""

    user: str
    password: str
    token: str | None = None


class Gateway:
    """One connection of some protocol."""

    closing = False
    """Whether the connection is to be closed once the output is drained."""
    login: LoginRequest | None = None
    """A password, or a token, to be checked."""
    grants: Grants = OPEN
    """What the peer may do; set by the server before ``logged_in`` says yes."""
    refusal: PenstockError | None = None
    """Why a login was not looked at; set by the server before ``logged_in`` says no."""
    vouched: Grants | None = None
    """What the user may do whom the peer's certificate names: no password is asked."""
    settled = True
    """Whether the peer has said who it is, as far as the protocol asks for it."""
    who = ""
    """Who the peer says it is, as subscriber or user, once it does."""
    lingers = False
    """Whether the peer is heard out when we close, so that it gets our last word."""
    patience_s = 0.0
    """How long the peer may be silent before it has timed out; 0 for any time."""

    @property
    def busy(self) -> bool:
        """Whether it has something to do that may take a while, in its turn."""
        return False

    def go_on(self, now_s: float) -> None:
        """Do a piece of what it is busy with."""
        raise NotImplementedError

    def is_vouched(self, user: str | None) -> bool:
        """Whether the certificate names this user; then its grants count from now on.

        Who says no name is the one that the certificate names. Only for a peer that
        gives no password: one that is given is checked.
        """
        vouched = self.vouched
        if vouched is None or (user is not None and user.lower() != vouched.user):
            return False
        self.grants = vouched
        return True

    def connected(self, now_s: float) -> None:
        """The connection stands: greet."""

    def receive(self, data: bytes, now_s: float) -> None:
        """Take in one read from the socket."""
        raise NotImplementedError

    def eof(self, now_s: float) -> None:
        """The peer sends no more: what it began and did not end is all there is."""
        raise NotImplementedError

    def logged_in(self, ok: bool, now_s: float) -> None:
        """The answer to ``login``."""
        raise NotImplementedError

    def turned_away(self, error: PenstockError, now_s: float) -> None:
        """The answer to ``login``, if user and password are right and it is no use."""
        self.login = None
        self.cut_off(str(error), now_s)

    def timed_out(self, now_s: float) -> None:
        """The peer was silent for longer than ``patience_s``."""
        self.closing = True

    def cut_off(self, reason: str, now_s: float) -> None:
        """The login counts no more: say so, as the last word."""
        self.closing = True

    def part(self, now_s: float) -> None:
        """The server ends: what is said now is the last word."""

    @property
    def has_output(self) -> bool:
        """Whether ``output`` may have something to do after ``receive``.

        If not, it is not asked before the gateway is in ``broker.awake``.
        """
        return True

    def output(self, now_s: float, room: int) -> list[bytes]:
        """What is to be sent now, about ``room`` bytes at most."""
        raise NotImplementedError

    def disconnected(self, now_s: float) -> None:
        """The connection is gone; of one that lingers this may be said twice."""
        raise NotImplementedError
