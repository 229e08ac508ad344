"""Checkpoints: everything the journal said before a position, so it may be forgotten.

Crash promise: precious, but doubled. A checkpoint is written whole or not at all
(temporary file, sync, rename, directory sync). The two newest are kept, with the
journal since the older one; if both are lost, the topics are found again from their
segments, and only the owners' snapshots are gone. Little-endian::

    0   4  magic "PNSC"
    4   1  version, 2
    5   3  zero
    8   4  length of the file
    12  4  CRC32C of all other bytes
    16     MessagePack of StoredCheckpoint
"""

from __future__ import annotations

import logging
import os
import struct

import msgspec

from penstock.errors import UnsupportedVersion
from penstock.files import FileSystem, read_file, replace_file
from penstock.log.damage import Damage
from penstock.log.frame import checksum
from penstock.log.layout import CHECKPOINT_SUFFIX, Layout, numbered
from penstock.log.options import TopicOptions

logger = logging.getLogger(__name__)

MAGIC = b"PNSC"
VERSION = 2
_READABLE = range(1, VERSION + 1)
HEADER = struct.Struct("<4sB3xII")
KEPT = 2
_CRC = struct.Struct("<I")


class TopicRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A topic as it is created, and as a checkpoint finds it."""

    id: int
    name: str
    options: TopicOptions
    start_offset: int = 0
    end_offset: int = 0
    active_base: int | None = None
    active_length: int = 0
    first_base: int | None = None
    """Of the oldest segment; None: there is none, or it is not known."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The state after group ``number``, which ends at ``position``."""

    position: int
    number: int
    next_topic_id: int
    topics: list[TopicRecord]
    snapshots: dict[int, bytes]


class CheckpointRow(msgspec.Struct, array_like=True, gc=False):
    """A topic in the file: most topics have the options of others."""

    id: int
    name: str
    options: int
    start_offset: int
    end_offset: int
    active_base: int | None
    active_length: int
    first_base: int | None


class StoredCheckpoint(msgspec.Struct, kw_only=True):
    """What the file holds; version 1 has ``topics`` for ``options`` and ``rows``."""

    position: int
    number: int
    next_topic_id: int
    options: list[TopicOptions] = []
    rows: list[CheckpointRow] = []
    topics: list[TopicRecord] | msgspec.UnsetType = msgspec.UNSET
    snapshots: dict[int, bytes]


def _stored(checkpoint: Checkpoint) -> StoredCheckpoint:
    known: dict[TopicOptions, int] = {}
    last, place = None, 0
    rows = []
    for one in checkpoint.topics:
        if one.options is not last:
            last = one.options
            place = known.setdefault(last, len(known))
        rows.append(
            CheckpointRow(
                *(one.id, one.name, place, one.start_offset, one.end_offset),
                *(one.active_base, one.active_length, one.first_base),
            )
        )
    return StoredCheckpoint(
        position=checkpoint.position,
        number=checkpoint.number,
        next_topic_id=checkpoint.next_topic_id,
        options=list(known),
        rows=rows,
        snapshots=checkpoint.snapshots,
    )


def _restored(stored: StoredCheckpoint) -> Checkpoint:
    topics = stored.topics or [_record(one, stored.options) for one in stored.rows]
    return Checkpoint(
        position=stored.position,
        number=stored.number,
        next_topic_id=stored.next_topic_id,
        topics=topics,
        snapshots=stored.snapshots,
    )


def _record(one: CheckpointRow, options: list[TopicOptions]) -> TopicRecord:
    return TopicRecord(
        id=one.id,
        name=one.name,
        options=options[one.options],
        start_offset=one.start_offset,
        end_offset=one.end_offset,
        active_base=one.active_base,
        active_length=one.active_length,
        first_base=one.first_base,
    )


def encode(checkpoint: Checkpoint) -> bytes:
    body = msgspec.msgpack.encode(_stored(checkpoint))
    head = bytearray(HEADER.pack(MAGIC, VERSION, HEADER.size + len(body), 0))
    _CRC.pack_into(head, 12, checksum(head, [body]))
    return bytes(head) + body


def decode(data: bytes, file: str) -> Checkpoint | None:
    """The checkpoint in ``data``; None if it is torn or damaged."""
    if not is_whole(data, file):
        return None
    body = memoryview(data)[HEADER.size :]
    return _restored(msgspec.msgpack.decode(body, type=StoredCheckpoint))


def is_whole(data: bytes, file: str) -> bool:
    """Whether this is a checkpoint and no bit of it is lost.

    Raises UnsupportedVersion.
    """
    if len(data) < HEADER.size:
        return False
    magic, version, length, crc = HEADER.unpack_from(data)
    if magic != MAGIC or length != len(data) or checksum(data, ()) != crc:
        return False
    if version not in _READABLE:
        raise UnsupportedVersion(file, version, VERSION)
    return True


def store(files: FileSystem, layout: Layout, checkpoint: Checkpoint) -> None:
    """Put a checkpoint on disk for good; raises OSError, then nothing has changed."""
    path = layout.checkpoint_file(checkpoint.position)
    replace_file(files, path, encode(checkpoint))


def positions(files: FileSystem, layout: Layout) -> list[int]:
    if not files.exists(layout.checkpoints):
        return []
    return numbered(files.list(layout.checkpoints), CHECKPOINT_SUFFIX)


def prune(files: FileSystem, layout: Layout, *, keep: int) -> int:
    """Remove all but the newest ``keep``; the position the oldest kept one has.

    For good: one that came back after a crash would miss its part of the journal.
    """
    present = positions(files, layout)
    for position in present[:-keep]:
        files.remove(layout.checkpoint_file(position))
    if present[:-keep]:
        files.sync_directory(layout.checkpoints)
    return present[-keep:][0]


def load_newest(
    files: FileSystem, layout: Layout
) -> tuple[Checkpoint | None, list[Damage]]:
    """The newest checkpoint that is whole, and what was wrong with newer ones."""
    damages: list[Damage] = []
    for position in reversed(positions(files, layout)):
        checkpoint, damage = load(files, layout, position)
        if checkpoint is not None:
            return checkpoint, damages
        if damage is not None:
            damages.append(damage)
    return None, damages


def load(
    files: FileSystem, layout: Layout, position: int
) -> tuple[Checkpoint | None, Damage | None]:
    """The checkpoint at a position, or what is wrong with it."""
    path = layout.checkpoint_file(position)
    data = read_file(files, path)
    checkpoint = decode(data, path)
    if checkpoint is not None:
        return checkpoint, None
    return None, _damage(layout, path, data)


def check(files: FileSystem, layout: Layout, position: int) -> Damage | None:
    """What is wrong with the checkpoint at a position, if anything is."""
    path = layout.checkpoint_file(position)
    data = read_file(files, path)
    return None if is_whole(data, path) else _damage(layout, path, data)


def _damage(layout: Layout, path: str, data: bytes) -> Damage:
    return Damage(
        file=os.path.relpath(path, layout.directory),
        position=0,
        length=len(data),
        reason="checkpoint fails its checksum",
    )
