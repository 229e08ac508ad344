"""A line of Spark to the broker: the first of its servers that answers."""

from __future__ import annotations

from penstock.client import Client, connect, lasting
from penstock.client.address import remote
from penstock.errors import NotRunning
from penstock.table.connection import BrokerAccess

# Who published it, unless somebody logs in.
NAME = "spark"


class SparkConnection(lasting.LastingConnection):
    """Opened when it is first needed; close it, or use it as a context manager."""

    def __init__(self, connection: BrokerAccess) -> None:
        super().__init__(lambda: _opened(connection), connection.retry_s)


def _opened(where: BrokerAccess) -> Client:
    away: NotRunning | None = None
    places = [remote(one, where.tls) for one in where.servers]
    for address in places or (where.path or "",):
        try:
            return connect(address, user=where.user, password=where.secret(), name=NAME)
        except NotRunning as error:
            away = error
    assert away is not None, "there is one address at least"
    raise away
