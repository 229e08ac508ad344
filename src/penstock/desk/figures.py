"""The broker at work, for clients that look: made when one asks, and only then.

What is counted all the time is in broker/traffic.py. Sums over subscriptions are made
once for all who look until something has passed again.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

from msgspec import Meta
from msgspec.structs import replace

from penstock import __version__
from penstock.access.account import bytes_of
from penstock.broker.broker import Broker
from penstock.broker.traffic import HISTORY
from penstock.desk.arguments import Limit, Number
from penstock.desk.flow import EDGES, MAX_EDGES, FlowWatch
from penstock.desk.letter_book import LetterCount
from penstock.desk.verbs import verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.figures import (
    Config,
    ConnectionPage,
    ConnectionRow,
    DiskRow,
    Flow,
    History,
    Machine,
    Overview,
    Pipeline,
    Processes,
    RateRow,
    SettingRow,
    SyncRow,
    TopicFigures,
    TotalRow,
)
from penstock.files import Files
from penstock.log import BrokerLog, Layout

# Topics of one overview, unless more are asked for, and at most.
ROWS = 200
# Between two looks at the disk: every topic has to be asked, and the file system.
LOOK_MS = 5_000

Edges = Annotated[int, Meta(ge=1, le=MAX_EDGES)]
# Of a part of a topic's name.
TopicSearch = Annotated[str, Meta(max_length=1000)]


class ProcessInfo(Protocol):
    """What only the process knows that the broker runs in."""

    def connections(self) -> list[ConnectionRow]: ...

    def connection_counts(self) -> dict[str, int]:
        """How many there are of each gateway."""

    def settings(self) -> list[SettingRow]: ...

    def processes(self) -> Processes: ...

    def pipeline(self) -> Pipeline: ...


class Standing(NamedTuple):
    """The subscriptions of a topic together."""

    subscriptions: int
    lag: int
    unsettled: int


_NO_CONSUMERS = Standing(0, 0, 0)


class Figures:
    def __init__(self, broker: Broker, process: ProcessInfo | None = None) -> None:
        self.process = process
        """None: it is not known what is around the broker."""
        self._broker = broker
        self.flow = FlowWatch(self, broker)
        self._letters = LetterCount(broker)
        self._disk = DiskUse(broker.log)
        self._standings: dict[str, Standing] = {}
        self._asked = False
        self._made: object = None
        self._lags: deque[tuple[int, int]] = deque(maxlen=HISTORY)
        """The lag of all at slots in which a client looked."""
        self._names: list[str] = []
        self._named: tuple[int, int] = (0, 0)

    def overview(
        self, *, limit: int = ROWS, after: str | None = None, search: str = ""
    ) -> Overview:
        """Everything in a few numbers, and the topics most active or asked for."""
        broker, traffic = self._broker, self._broker.traffic
        rates = traffic.rates()
        standings = self.standings()
        lag = sum(one.lag for one in standings.values())
        self._note_lag(lag)
        rows, more = self._rows(limit, after, search)
        p50, p95 = traffic.sync_ms(0.5, 0.95)
        process = self.process
        return Overview(
            at_ms=broker.log.now_ms(),
            uptime_s=round(broker.log.now_ms() / 1000 - traffic.began_s, 1),
            version=__version__,
            rates=RateRow(
                in_=rates.stored,
                out=rates.sent,
                in_bytes=rates.stored_bytes,
                out_bytes=rates.sent_bytes,
            ),
            totals=TotalRow(in_=traffic.stored, out=traffic.sent),
            lag=lag,
            unsettled=sum(one.unsettled for one in standings.values()),
            dead_letters=self._letters.open(),
            disk=self.disk(),
            sync=SyncRow(p50_ms=p50, p95_ms=p95, commits_s=rates.commits),
            connections={} if process is None else process.connection_counts(),
            topics_count=len(self.names()),
            subscriptions_count=len(broker.subscriptions),
            history=self._history(),
            topics=rows,
            more=more,
        )

    def pipeline(self) -> Pipeline:
        """What ``penstock up`` has told last, if it runs this broker."""
        nothing = Pipeline(running=False, stages=[], at_ms=None)
        status = nothing if self.process is None else self.process.pipeline()
        return replace(status, asked=self._asked)

    def ask_for_stream(self) -> None:
        """Have a resting pipeline begin, the next time that it looks."""
        self._asked = True

    @property
    def ticks(self) -> int:
        """Another number with every second that was counted."""
        return self._broker.traffic.ticks

    def disk(self) -> DiskRow:
        return self._disk.row()

    def dead_letters(self) -> int:
        """How many are open."""
        return self._letters.open()

    def names(self) -> list[str]:
        """All topics but Penstock's own, in order; made anew when they change."""
        log = self._broker.log
        mark = (log.topic_count, log.topics_made)
        if mark != self._named:
            self._named = mark
            self._names = sorted(
                one.name for one in log.each_topic() if one.name[0] != "$"
            )
        return self._names

    def most_active(self, limit: int) -> list[str]:
        """Topics by what goes in and out, then by name."""
        log, activity = self._broker.log, self._activity()
        busy = nlargest(limit, activity, key=lambda name: (activity[name], name))
        found = [name for name in busy if log.has_topic(name)]
        if len(found) < limit:
            known = set(found)
            rest = (name for name in self.names() if name not in known)
            found += islice(rest, limit - len(found))
        return found

    def standings(self) -> dict[str, Standing]:
        """The subscriptions of each topic that has any, together."""
        traffic = self._broker.traffic
        made = (
            traffic.ticks,
            traffic.stored,
            traffic.sent,
            self._broker.log.open_group,
        )
        if made != self._made:
            self._made = made
            self._standings = _standings(self._broker)
        return self._standings

    def sent_by_topic(self) -> dict[str, float]:
        """Events a second that subscriptions of each topic take."""
        found: dict[str, float] = {}
        subscriptions = self._broker.subscriptions
        for number, rate in self._broker.traffic.sent_by_subscription().items():
            one = subscriptions.numbered(number)
            if one is not None:
                found[one.topic] = found.get(one.topic, 0.0) + rate
        return found

    def _activity(self) -> dict[str, float]:
        activity = self._broker.traffic.stored_by_topic()
        for name, rate in self.sent_by_topic().items():
            activity[name] = activity.get(name, 0.0) + rate
        return activity

    def _rows(
        self, limit: int, after: str | None, search: str
    ) -> tuple[list[TopicFigures], bool]:
        if after is None and not search:
            names = self.most_active(limit)
            more = len(self.names()) > len(names)
        else:
            wanted, behind = search.casefold(), after or ""
            found = [
                name
                for name in self.names()
                if name > behind and wanted in name.casefold()
            ]
            names, more = found[:limit], len(found) > limit
        return self.rows(names), more

    def rows(self, names: Iterable[str]) -> list[TopicFigures]:
        """One row for each of these topics."""
        traffic, log = self._broker.traffic, self._broker.log
        stored, sent = traffic.stored_by_topic(), self.sent_by_topic()
        letters, standings = self._letters.by_topic(), self.standings()
        idle = [0.0] * len(traffic.topics)
        lately = set().union(*traffic.topics)
        rows = []
        for name in names:
            topic, standing = log.topic(name), standings.get(name, _NO_CONSUMERS)
            rows.append(
                TopicFigures(
                    name=name,
                    events=topic.end_offset - topic.start_offset,
                    bytes=bytes_of(topic),
                    in_=stored.get(name, 0.0),
                    out=round(sent.get(name, 0.0), 1),
                    lag=standing.lag,
                    subscriptions=standing.subscriptions,
                    dead_letters=letters.get(name, 0),
                    spark=traffic.spark(name) if name in lately else idle,
                )
            )
        return rows

    def _note_lag(self, lag: int) -> None:
        slot = self._broker.traffic.ticks
        if self._lags and self._lags[-1][0] == slot:
            self._lags.pop()
        self._lags.append((slot, lag))

    def _history(self) -> History:
        traffic = self._broker.traffic
        slots, lags = list(traffic.slots), dict(self._lags)
        first = traffic.ticks - len(slots) + 1
        return History(
            step_s=1,
            in_=[round(slot.stored / slot.seconds, 1) for slot in slots],
            out=[round(slot.sent / slot.seconds, 1) for slot in slots],
            lag=[lags.get(first + at) for at in range(len(slots))],
        )


def _standings(broker: Broker) -> dict[str, Standing]:
    """Many subscriptions at once: what they share is looked up once for each topic."""
    found: dict[str, Standing] = {}
    for name, subscriptions in broker.subscriptions.by_topic():
        topic, levels = broker.log.topic(name), broker.levels.get(name)
        start, end = topic.start_offset, topic.end_offset
        count = unsent = unsettled = 0
        for one in subscriptions:
            count += 1
            if not (one.active or one.suspended):
                continue
            unsettled += len(one.owed)
            unsent += one.fresh.delayed
            cursor = one.cursor
            if levels is None or cursor.plain:
                unsent += cursor.unsent_plainly(start, end)
            else:
                unsent += cursor.unsent()
        found[name] = Standing(count, unsent + unsettled, unsettled)
    return found


class DiskUse:
    """What a log takes on disk, and what is left; looked at now and then."""

    def __init__(self, log: BrokerLog) -> None:
        self._log = log
        self._row: DiskRow | None = None
        self._looked_ms = 0

    def row(self) -> DiskRow:
        """How it was some seconds ago at most."""
        now_ms = self._log.now_ms()
        if self._row is None or not 0 <= now_ms - self._looked_ms < LOOK_MS:
            self._looked_ms = now_ms
            self._row = self._look()
        return self._row

    def _look(self) -> DiskRow:
        used = sum(topic.bytes for topic in self._log.each_topic())
        if not isinstance(self._log.files, Files):
            return DiskRow(used_bytes=used, free_bytes=None)
        journal = Layout(self._log.directory).journal
        try:
            used += sum(file.stat().st_size for file in Path(journal).iterdir())
            room = os.statvfs(self._log.directory)
        except OSError:  # a file that was just retired, or a disk that is gone
            return self._row or DiskRow(used_bytes=used, free_bytes=None)
        return DiskRow(used_bytes=used, free_bytes=room.f_bavail * room.f_frsize)


class FigureDesk:
    """The verbs: the broker at work, who is connected, what flows where."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    @verb("overview")
    def overview(
        self, *, limit: Limit = ROWS, after: str | None = None, search: TopicSearch = ""
    ) -> Overview:
        """The broker in a few numbers, and a row for each of some topics.

        Those are the most active ones; with ``after`` or ``search`` those behind a
        name, or with this in their names, by name.
        """
        return self._figures.overview(limit=limit, after=after, search=search)

    @verb("connections")
    def connections(
        self, *, after: Number = 0, gateway: str | None = None, limit: Limit = MAX_ROWS
    ) -> ConnectionPage:
        """Who is connected, by number, behind ``after``; at one gateway, or at all."""
        process = self._figures.process
        found = [
            one
            for one in ([] if process is None else process.connections())
            if one.number > after and gateway in (None, one.gateway)
        ]
        found.sort(key=lambda one: one.number)
        return ConnectionPage(connections=found[:limit], more=len(found) > limit)

    @verb("flow")
    def flow(self, *, limit: Edges = EDGES) -> Flow:
        """Which way events go: publishers, topics, subscribers, causes.

        ``limit``: how many edges there are at most, the busiest.
        """
        return self._figures.flow.look(limit)

    @verb("processes")
    def processes(self) -> Processes:
        """The broker's process, and those of ``penstock up`` if it runs this one."""
        process = self._figures.process
        if process is None:
            nothing = Machine(cores=0, memory_bytes=0)
            return Processes(processes=[], versions={}, machine=nothing)
        return process.processes()

    @verb("config")
    def config(self) -> Config:
        """Every setting, and where its value is from; secrets are not shown."""
        process = self._figures.process
        return Config(settings=[] if process is None else process.settings())

    @verb("pipeline")
    def pipeline(self) -> Pipeline:
        """The stages of ``penstock up``, if it runs this broker."""
        return self._figures.pipeline()
