"""Open segment files and their indexes, the few that were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from penstock.files import FileSystem
from penstock.log.index import Index

# Each costs a file descriptor and up to 24 KiB of index.
MAX_OPEN_SEGMENTS = 128


class SegmentCache:
    def __init__(self, files: FileSystem, limit: int = MAX_OPEN_SEGMENTS) -> None:
        self._files = files
        self._limit = limit
        self._handles: OrderedDict[str, int] = OrderedDict()
        self._indexes: OrderedDict[str, Index] = OrderedDict()

    def handle(self, path: str) -> int:
        """A handle for reading ``path``, good until the next call."""
        handle = self._handles.get(path)
        if handle is None:
            handle = self._handles[path] = self._files.open(path)
            if len(self._handles) > self._limit:
                oldest, old = self._handles.popitem(last=False)
                self._files.close(old)
                # It may be another file by the time when it is opened again.
                self._indexes.pop(oldest, None)
        else:
            self._handles.move_to_end(path)
        return handle

    def index(self, path: str, make: Callable[[], Index]) -> Index:
        index = self._indexes.get(path)
        if index is None:
            index = self._indexes[path] = make()
            if len(self._indexes) > self._limit:
                self._indexes.popitem(last=False)
        else:
            self._indexes.move_to_end(path)
        return index

    def drop(self, path: str) -> None:
        """Forget a file that is about to change or go."""
        self._indexes.pop(path, None)
        handle = self._handles.pop(path, None)
        if handle is not None:
            self._files.close(handle)

    def close(self) -> None:
        for path in list(self._handles):
            self.drop(path)
        self._indexes.clear()
