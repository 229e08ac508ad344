"""The follower maze: one source of numbered events, many clients that hear of some."""

from __future__ import annotations

from penstock.gateway.maze.client import MazeClient
from penstock.gateway.maze.hub import MazeHub
from penstock.gateway.maze.source import MazeSource
from penstock.gateway.maze.state import MazeState

__all__ = ["MazeClient", "MazeHub", "MazeSource", "MazeState"]
