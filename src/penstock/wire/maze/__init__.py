"""The follower maze protocol: numbered events in, the same bytes out."""

from __future__ import annotations

from penstock.wire.maze.events import (
    BROADCAST,
    FOLLOW,
    PRIVATE,
    STATUS,
    UNFOLLOW,
    Bad,
    MazeRow,
    Parsed,
    parse,
    parse_client_id,
)

__all__ = [
    "BROADCAST",
    "FOLLOW",
    "PRIVATE",
    "STATUS",
    "UNFOLLOW",
    "Bad",
    "Parsed",
    "MazeRow",
    "parse",
    "parse_client_id",
]
