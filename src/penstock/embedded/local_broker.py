"""The broker of a data directory, for the program that opens it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial

from penstock.broker.broker import Broker
from penstock.broker.options import BrokerOptions
from penstock.clock import Clock
from penstock.errors import NotADataDirectory
from penstock.files import FileSystem, write_error
from penstock.gateway.maze import MazeState
from penstock.log import Log, LogOptions, TopicOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """How the broker of a program is opened.

    listen: whether commands may work on it while it runs, at the socket in its data
        directory.
    """

    log: LogOptions = field(default_factory=LogOptions)
    broker: BrokerOptions = field(default_factory=BrokerOptions)
    topics: TopicOptions = field(default_factory=TopicOptions)
    listen: bool = True


def open_broker(
    path: str | os.PathLike[str],
    options: LocalOptions,
    clock: Clock,
    files: FileSystem | None,
) -> Broker:
    """The broker of a data directory; raises DirectoryLocked naming who has it.

    Also NotADataDirectory, WriteFailed.
    """
    try:
        return Broker(
            partial(Log.open, path, options.log, clock=clock, files=files),
            options.broker,
            options.topics,
            kept=[MazeState()],  # written if it was served, and to be kept
        )
    except (NotADirectoryError, FileExistsError) as error:
        raise NotADataDirectory(os.fspath(path)) from error
    except OSError as error:
        raise write_error(os.fspath(path), "opening", error) from error
