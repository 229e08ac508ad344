"""From events in order to the lines each connected client gets.

Events are routed a batch at a time: their lines are gathered in a list per client, and
each client that got some joins its own once, at the end of the batch.
"""

from __future__ import annotations

from typing import Protocol

from penstock.gateway.maze.followers import Followers
from penstock.gateway.maze.letters import MazeLetters
from penstock.wire.maze import (
    BROADCAST,
    FOLLOW,
    PRIVATE,
    STATUS,
    UNFOLLOW,
    MazeRow,
)

# An event and its line, as it came and as it goes.
RoutedLine = tuple[MazeRow, bytes]
# In place of an event that was refused: its number is used up, nothing is routed.
NO_KIND = 0


class MazeListener(Protocol):
    """A connected client that has said who it is."""

    lines: list[bytes]

    def gather(self) -> None:
        """Turn the lines into output; called once per batch that brought some."""

    def replaced(self) -> None:
        """Another connection has taken the place of this one."""


class MazeRouter:
    """Who is connected, and the rules of who is told of what.

    ``absent`` counts notifications that found no client.
    """

    def __init__(
        self, followers: Followers, letters: MazeLetters, *, store_absent: bool
    ) -> None:
        self.absent = 0
        self._followers = followers
        self._letters = letters
        self._store_absent = store_absent
        self._listeners: dict[int, MazeListener] = {}
        # The same keys: a list is all that routing wants of a listener.
        self._lines: dict[int, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self, client: int, listener: MazeListener) -> None:
        """The newest connection of a client counts: it is the one that came back."""
        former = self._listeners.get(client)
        self._listeners[client] = listener
        self._lines[client] = listener.lines
        if former is not None:
            former.replaced()

    def leave(self, client: int, listener: MazeListener) -> None:
        if self._listeners.get(client) is listener:
            del self._listeners[client], self._lines[client]

    def missed(self, client: int, lines: list[bytes], reason: str) -> None:
        """Count notifications that a client did not take, and keep them if asked."""
        self.absent += len(lines)
        if self._store_absent:
            for line in lines:
                self._letters.keep(f"client {client} {reason}", line)

    def route(self, items: list[RoutedLine]) -> None:
        """Apply events, which must be in order, and tell the clients."""
        graph, lines_of = self._followers.graph, self._lines.get
        follow, unfollow = self._followers.follow, self._followers.unfollow
        receivers: list[int] = []
        # Kinds by how many there are of them; every step here is paid per event.
        for (_, kind, one, other), line in items:
            if kind == STATUS:
                followers = graph.get(one)
                if followers is not None:
                    self._tell_followers(one, followers, line, receivers)
                continue
            if kind == UNFOLLOW:
                unfollow(one, other)
                continue
            if kind == FOLLOW:
                follow(one, other)
            elif kind == BROADCAST:
                self._tell_all(line, receivers)
                continue
            elif kind != PRIVATE:
                continue
            lines = lines_of(other)
            if lines is None:
                self.absent += 1
                if self._store_absent:
                    self._letters.keep(f"client {other} is not connected", line)
            else:
                if not lines:
                    receivers.append(other)
                lines.append(line)
        listeners = self._listeners
        for listener in [listeners[client] for client in receivers]:
            listener.gather()

    def _tell_followers(
        self, user: int, followers: set[int], line: bytes, receivers: list[int]
    ) -> None:
        lines_of = self._lines.get
        count = 0
        # However many follow, no more are looked at than are connected.
        crowd = len(followers) > len(self._lines)
        for client in followers.intersection(self._lines) if crowd else followers:
            lines = lines_of(client)
            if lines is not None:
                count += 1
                if not lines:
                    receivers.append(client)
                lines.append(line)
        missed = len(followers) - count
        if missed:
            self.absent += missed
            if self._store_absent:
                of = f"{missed} of {len(followers)} followers of {user}"
                self._letters.keep(f"{of} are not connected", line)

    def _tell_all(self, line: bytes, receivers: list[int]) -> None:
        for client, lines in self._lines.items():
            if not lines:
                receivers.append(client)
            lines.append(line)
