"""The desk's figures: the broker at work, who is connected, what flows where."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from penstock.desk.figures import MAX_ROWS, ROWS, Figures
from penstock.desk.flow import EDGES, MAX_EDGES
from penstock.desk.verbs import verb
from penstock.desk.views.figures import (
    Config,
    ConnectionPage,
    Flow,
    Machine,
    Overview,
    Pipeline,
    Processes,
)

Limit = Annotated[int, Meta(ge=1, le=MAX_ROWS)]
Edges = Annotated[int, Meta(ge=1, le=MAX_EDGES)]
Number = Annotated[int, Meta(ge=0)]
# Of a part of a topic's name.
Search = Annotated[str, Meta(max_length=1000)]


class FigureDesk:
    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    @verb("overview")
    def overview(
        self, *, limit: Limit = ROWS, after: str | None = None, search: Search = ""
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
        around = self._figures.around
        found = [
            one
            for one in ([] if around is None else around.connections())
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
        around = self._figures.around
        if around is None:
            nothing = Machine(cores=0, memory_bytes=0)
            return Processes(processes=[], versions={}, machine=nothing)
        return around.processes()

    @verb("config")
    def config(self) -> Config:
        """Every setting, and where its value is from; secrets are not shown."""
        around = self._figures.around
        return Config(settings=[] if around is None else around.settings())

    @verb("pipeline")
    def pipeline(self) -> Pipeline:
        """The stages of ``penstock up``, if it runs this broker."""
        return self._figures.pipeline()
