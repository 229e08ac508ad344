"""Who follows whom, whether or not any of them is connected."""

from __future__ import annotations

from collections.abc import Set

Graph = dict[int, set[int]]
_NO_FOLLOWERS: frozenset[int] = frozenset()


class Followers:
    """Users and their followers. A user without followers takes no memory.

    ``graph`` is open to be read: routing looks into it for every status.
    """

    __slots__ = ("graph",)

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph: Graph = {} if graph is None else graph

    def follow(self, follower: int, user: int) -> None:
        """Count ``follower`` once, however often it asks."""
        followers = self.graph.get(user)
        if followers is None:
            self.graph[user] = {follower}
        else:
            followers.add(follower)

    def unfollow(self, follower: int, user: int) -> None:
        followers = self.graph.get(user)
        if followers is not None:
            followers.discard(follower)
            if not followers:
                del self.graph[user]

    def of(self, user: int) -> Set[int]:
        return self.graph.get(user, _NO_FOLLOWERS)

    def clear(self) -> None:
        # In place: code that holds the graph keeps looking at the right one.
        self.graph.clear()
