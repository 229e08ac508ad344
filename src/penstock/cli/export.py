"""A topic as a file of another format: JSON lines, Parquet or Arrow.

Batches are written as they are read, so memory does not grow with the topic. A named
file appears under its name when it is whole and synced, or not at all.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol, get_args

import click

from penstock.cli.jsonl import line_of
from penstock.cli.output import StandardOutput
from penstock.cli.refusal import Refusal
from penstock.files import Files, remove_if_there
from penstock.log import Batch

Format = Literal["jsonl", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = get_args(Format)


class ExportTarget(Protocol):
    """Takes all the bytes it is given."""

    def write(self, data: bytes, /) -> object: ...


def export(
    topic: str, batches: Iterable[Batch], format_: Format, out: str | None
) -> None:
    """Write the batches to ``out``, or to standard output."""
    if out is None and format_ != "jsonl" and sys.stdout.isatty():
        raise Refusal(
            f"{format_} is binary, and standard output is a terminal",
            "name a file with --out FILE, or redirect the output",
        )
    write = _writer(format_)
    with _sink(out) as sink:
        write(sink, topic, batches)


def with_progress(batches: Iterable[Batch], events: int) -> Iterator[Batch]:
    """The same batches, with a bar on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield from batches
        return
    with click.progressbar(length=events, label="exporting", file=sys.stderr) as bar:
        for batch in batches:
            yield batch
            bar.update(batch.end_offset - batch.base_offset)


class _WriteEvents(Protocol):
    def __call__(
        self, sink: ExportTarget, topic: str, batches: Iterable[Batch]
    ) -> None: ...


def _writer(format_: Format) -> _WriteEvents:
    if format_ == "jsonl":
        return _write_lines
    # Here, because Arrow is an extra: MissingExtra if it is not installed.
    from penstock.log import write_arrow, write_parquet

    return write_parquet if format_ == "parquet" else write_arrow


def _write_lines(sink: ExportTarget, topic: str, batches: Iterable[Batch]) -> None:
    for batch in batches:
        sink.write(b"".join(map(line_of, batch.events())))


def _sink(out: str | None) -> AbstractContextManager[ExportTarget]:
    if out is None:
        return contextlib.nullcontext(StandardOutput())
    return _file(out)


@contextlib.contextmanager
def _file(out: str) -> Iterator[ExportTarget]:
    """A file that takes its name when all of it is on disk."""
    files, path = Files(access=None), Path(out).resolve()
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        sink = _Handle(files, temporary)
        try:
            yield sink
            sink.sync()
        finally:
            sink.close()
        files.rename(temporary, str(path))
        files.sync_directory(str(path.parent))
    except OSError as error:
        raise Refusal(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        remove_if_there(files, temporary)


class _Handle:
    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._handle = files.open(path, write=True, create=True)
        self._position = 0

    def write(self, data: bytes, /) -> None:
        self._position += self._files.write(self._handle, [data], self._position)

    def sync(self) -> None:
        self._files.sync(self._handle)

    def close(self) -> None:
        self._files.close(self._handle)
