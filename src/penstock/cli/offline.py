"""The desk of a data directory that no server has open, for commands.

A command gets it over the files, locked as a server would lock them. What is changed is
committed before it is answered, as by a server.

Imported where it is needed: with it comes the whole broker, which a command that asks a
server has no use for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from penstock.broker.broker import Broker
from penstock.config import load
from penstock.desk.desk import Desk
from penstock.desk.verbs import Promise, call
from penstock.gateway.maze import MazeState
from penstock.log import Log


class OfflineDesk:
    def __init__(self, broker: Broker) -> None:
        self._log = broker.log
        self._desk = Desk(broker)

    def ask(self, verb: str, **arguments: object) -> object:
        """The answer as a client would get it; raises what the desk raises."""
        found = self._desk.find(verb)
        result = call(found, arguments)
        if found.promise is not Promise.NOTHING:
            self._log.commit()
        return msgspec.to_builtins(result, builtin_types=(bytes,))


@contextmanager
def offline(directory: str) -> Iterator[OfflineDesk]:
    """The desk of a directory; raises DirectoryLocked, NotADataDirectory."""
    settings = load()
    open_log = partial(Log.open, directory, settings.log, create=False)
    kept = [MazeState()]
    with Broker(open_log, settings.broker, settings.topics, kept) as broker:
        yield OfflineDesk(broker)
