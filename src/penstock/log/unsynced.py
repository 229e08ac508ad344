"""Handles of segments that were written and are not synced yet.

The kernel writes back when it likes. If that fails, it says so to the handles that are
open on the file, once each; a file that no process has open may leave memory, and the
error with it. A handle that is opened for the sync alone might be told that all is
well. So the one that wrote stays open until its file is synced. If there are more files
than ``MANY_FILES``, all are synced by a handle of their folder that was open all the
time: since Linux 5.8 it is told of every failed write-back of its file system. When
that has failed, files are synced one by one, and one that no handle has watched is
written again before.

Belongs to the work that is under way, else to the owner's thread; only ``give_up`` may
be called at any time.
"""

from __future__ import annotations

from penstock.files import FileSystem

# More files than this are synced by one call for the whole file system.
MANY_FILES = 128


class Unsynced:
    """``folder`` holds all files that are kept."""

    def __init__(self, files: FileSystem, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._whole: int | None = None
        self._handles: dict[str, int] = {}
        self._gone: list[str] = []

    def begin(self) -> None:
        """Be there before anything is written.

        The folder's handle stays until all is synced: one that comes later might not be
        told of an error that another handle has heard of.
        """
        self.purge()
        if self._whole is None:
            self._whole = self._files.open(self._folder)

    def keep(self, path: str, handle: int, *, new: bool) -> None:
        """Have a handle that has just written; the one that came first has seen more.

        ``new``: the file was made with it, whatever stood there before.
        """
        if new:
            self.let_go(path)
        if path in self._handles or len(self._handles) >= MANY_FILES:
            self._files.close(handle)
        else:
            self._handles[path] = handle

    def handle(self, path: str) -> int | None:
        """The handle that has seen all writes to the file since it was synced."""
        return self._handles.get(path)

    def let_go(self, path: str) -> None:
        """The file is synced."""
        handle = self._handles.pop(path, None)
        if handle is not None:
            self._files.close(handle)

    def sync_all(self) -> None:
        """Sync everything of the file system; raises OSError."""
        assert self._whole is not None, "begun before"
        self._files.sync_all(self._whole)
        self.close()

    def give_up(self, path: str) -> None:
        """The file goes: its room is free with the next work."""
        self._gone.append(path)

    def purge(self) -> None:
        while self._gone:
            self.let_go(self._gone.pop())

    def close(self) -> None:
        """Let go of all of them; the next folder handle forgets what this one saw."""
        for path in list(self._handles):
            self.let_go(path)
        if self._whole is not None:
            self._files.close(self._whole)
            self._whole = None
