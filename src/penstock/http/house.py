"""All that the HTTP application knows of the server around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.access.grants import Grants
from penstock.broker.broker import Broker
from penstock.clock import Clock
from penstock.desk.desk import Desk
from penstock.desk.figures import Figures
from penstock.errors import LoginRefused, PenstockError
from penstock.http.keys import Tokens
from penstock.http.opened import OpenStreams
from penstock.http.options import HttpOptions
from penstock.http.promises import Promises
from penstock.http.sessions import WebSessions

if TYPE_CHECKING:
    from penstock.http.live import Live
    from penstock.http.metrics import Metrics
    from penstock.http.pull_consumers import PullConsumers
    from penstock.http.sql_routes import Questions

# What the users file says of a user now; None: it does not know them.
FindUser = Callable[[str], object]
# By user, password and address; raises LoginRefused, TooManyAttempts or Busy.
CheckUser = Callable[[str, str, str], Awaitable[Grants]]
# Notes that a token, from that address, was none; what to answer.
WrongToken = Callable[[str], PenstockError]
# What a user may do whom the certificate of a client at an address names; None: it
# names nobody. Raises LoginRefused if it names somebody who is not known.
Vouched = Callable[[Mapping[str, Any], str], Grants | None]


def unknown_token(address: str) -> PenstockError:
    """The answer where nobody counts."""
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
            object.__setattr__(self, name, value)  # frozen for everybody else
