"""Runs the contenders of a workload in turns, each in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from bench.embedded.field import Contender
from bench.embedded.player import Task
from bench.peers.adapter import Refused
from bench.peers.harness import Client, median
from bench.peers.processes import Missing
from bench.rounds import Sample, Settings, scratch

PLAYER = "bench.embedded.player"


@dataclass(kw_only=True)
class Bench:
    """One run: where, how long, and who could not take part and why."""

    settings: Settings
    rounds: int
    warm_ups: int
    # Contender -> why it took no part at all.
    absent: dict[str, str] = field(default_factory=dict)
    # (contender, workload) -> why it did not finish.
    failed: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings) -> Bench:
        warm_ups = 0 if settings.quick else 1
        return cls(settings=settings, rounds=settings.rounds, warm_ups=warm_ups)

    def case(
        self, title: str, contenders: Mapping[str, Contender]
    ) -> dict[str, Sample]:
        """The median sample of everybody who finished a round."""
        samples: dict[str, list[Sample]] = {}
        with ExitStack() as stack:
            players = self._players(stack, title, contenders)
            for turn in range(-self.warm_ups, self.rounds):
                for name, player in list(players.items()):
                    # Nobody shall pay for the dirty pages of the one before.
                    os.sync()
                    try:
                        sample = player.run()
                    except Refused as error:
                        self.failed[name, title] = str(error)
                        del players[name]
                        continue
                    if turn >= 0:
                        samples.setdefault(name, []).append(sample)
        return {name: median(samples[name]) for name in contenders if name in samples}

    def _players(
        self, stack: ExitStack, title: str, contenders: Mapping[str, Contender]
    ) -> dict[str, Client]:
        """Everybody who is ready; they prepare side by side."""
        players: dict[str, Client] = {}
        for name, contender in contenders.items():
            try:
                contender.check()
                players[name] = stack.enter_context(self._player(contender))
            except Missing as error:
                self.absent[name] = str(error)
        for name, player in list(players.items()):
            try:
                player.ready()
            except Refused as error:
                self.failed[name, title] = str(error)
                del players[name]
        return players

    @contextmanager
    def _player(self, contender: Contender) -> Iterator[Client]:
        with scratch(self.settings.directory) as folder, ExitStack() as stack:
            server = contender.start(folder, contender.variant)
            stack.callback(server.stop)
            task = Task(
                player=contender.player,
                place=server.place,
                directory=str(folder),
                events=self.settings.scaled(contender.events),
                options=dict(contender.options),
            )
            player = Client(task, PLAYER)
            stack.callback(player.close)
            yield player
