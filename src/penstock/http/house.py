"""All that the HTTP application knows of the server around it.

A request does something to the broker, notes the group that holds it, and waits. All
requests of a group share one future: nothing is kept per event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.access.grants import Grants
from penstock.broker.broker import Broker
from penstock.clock import Clock
from penstock.delivery.consumer import Member
from penstock.desk.desk import Desk
from penstock.desk.figures import Figures
from penstock.errors import InDoubt, LoginRefused, PenstockError, WriteFailed
from penstock.http.keys import Tokens
from penstock.http.opened import OpenStreams
from penstock.http.options import HttpOptions
from penstock.http.sessions import WebSessions

if TYPE_CHECKING:
    from penstock.http.live import Live
    from penstock.http.metrics import Metrics
    from penstock.http.pull_consumers import PullConsumers
    from penstock.http.sql_routes import Questions


class Promises(Protocol):
    """Kept by the engine of a server; see server/web.py."""

    @property
    def members(self) -> dict[object, Member]:
        """Whom the engine calls, by the outlet that the broker wakes."""

    async def kept(self, group: int) -> None:
        """Return when the group is on disk; raises WriteFailed if it never will be.

        For what is not done if it cannot be written: publishing, orders at the desk.
        """

    async def kept_at_last(self, group: int) -> None:
        """Return when the group, or one that says the same again, is on disk.

        For what the broker writes until it succeeds: settling, seeking, forgetting.
        """

    async def room(self) -> None:
        """Return when there is room for more: a publisher asks first."""

    def kick(self) -> None:
        """Have the engine turn: something was done that others may wait for."""

    def now_s(self) -> float:
        """Seconds since the epoch, by the clock of the broker."""

    def trouble(self) -> InDoubt | WriteFailed | None:
        """Why nothing can be promised at this moment, if nothing can."""


# What the users file says of a user now; None: it does not know them.
FindUser = Callable[[str], object]
# By user, password and address; raises LoginRefused, TooManyAttempts or Busy.
CheckUser = Callable[[str, str, str], Awaitable[Grants]]
# Notes that a token, from that address, was none; what to answer.
WrongToken = Callable[[str], PenstockError]
# What a user may do whom the certificate of a client at an address names; None: it
# names no user. Raises LoginRefused if it names a user that is not known.
Vouched = Callable[[Mapping[str, Any], str], Grants | None]


def unknown_token(address: str) -> PenstockError:
    """The answer where wrong tokens are not counted."""
    return LoginRefused("the token is not known here, or has expired")


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """``check_user`` and ``find_user`` are there if the server has a users file.

    ``questions`` are there if it answers some in SQL.

    What only the process knows (connections, settings, parts) is in ``figures``.
    ``opened`` and what stands below it are made from the rest; they belong to the app.
    """

    broker: Broker
    desk: Desk
    options: HttpOptions
    promises: Promises
    keys: Tokens
    clock: Clock
    figures: Figures
    check_user: CheckUser | None = None
    find_user: FindUser | None = None
    wrong_token: WrongToken = unknown_token
    vouched: Vouched | None = None
    questions: Questions | None = None
    opened: OpenStreams = field(init=False)
    sessions: WebSessions = field(init=False)
    pullers: PullConsumers = field(init=False)
    live: Live = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        # Here, as they know the house themselves.
        from penstock.http.live import Live
        from penstock.http.metrics import Metrics
        from penstock.http.pull_consumers import PullConsumers

        options, figures = self.options, self.figures
        made = {
            "opened": OpenStreams(options.max_streams),
            "sessions": WebSessions(options, self.clock),
            "pullers": PullConsumers(options.pull_idle_s),
            "live": Live(figures),
            "metrics": Metrics(self.broker, figures, options.metrics_topics),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)  # frozen for all other code
