"""Whether a small commit is synced where it was begun, or in a thread.

The way to a thread and back is three changes of context, the lock of Python and a
wake-up of the loop. A disk that is fast takes hardly longer, and whoever publishes one
event at a time has nothing else for the loop to do meanwhile. So the loop waits itself
for the sync of a small commit, if that is expected to be short. Commits of many bytes
go to the thread, as the loop has use for the time: the next ones collect.

All syncs of small commits are measured, wherever they run. One that took longer than
the loop may wait counts at once for all it took, and is forgotten step by step; until
then commits go to the thread.
"""

from __future__ import annotations

from math import inf

# How long the loop may wait for a sync, if nothing else is said.
SYNC_WAIT_S = 0.0005
# Nobody is served meanwhile.
MAX_SYNC_WAIT_S = 0.1
# Up to here a commit is small: it is that of a few events.
SMALL_COMMIT_BYTES = 4096
# Of what was measured lately, the last counts so much.
_NEWEST = 1 / 8
# A disk that took a minute once is asked again after some dozens of commits.
_MOST_TIMES = 100


class SyncPace:
    """``most_s``: how long the loop may wait; 0 is never."""

    def __init__(self, most_s: float = SYNC_WAIT_S) -> None:
        self._most_s = most_s
        self._expected_s = inf

    def is_short(self, size: int) -> bool:
        """Whether the loop may wait for the sync of so many bytes."""
        return size <= SMALL_COMMIT_BYTES and self._expected_s <= self._most_s

    def took(self, size: int, seconds: float) -> None:
        """A commit of so many bytes was on disk after so long."""
        if size > SMALL_COMMIT_BYTES or not self._most_s:
            return
        seconds = min(seconds, _MOST_TIMES * self._most_s)
        if self._expected_s == inf:
            # A few more, to be sure.
            self._expected_s = self._most_s + seconds
        elif seconds > self._most_s:
            self._expected_s = max(seconds, self._expected_s)
        else:
            self._expected_s += (seconds - self._expected_s) * _NEWEST
