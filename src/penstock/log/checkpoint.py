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
    16     MessagePack of Checkpoint
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


class TopicRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it is created, and as a checkpoint finds it."""

    id: int
    name: str
    options: TopicOptions
    start_offset: int = 0
    end_offset: int = 0
    active_base: int | None = None
    active_length: int = 0


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The state after group ``number``, which ends at ``position``."""

    position: int
    number: int
    next_topic_id: int
    topics: list[TopicRecord]
    snapshots: dict[int, bytes]


def encode(checkpoint: Checkpoint) -> bytes:
    body = msgspec.msgpack.encode(checkpoint)
    head = bytearray(HEADER.pack(MAGIC, VERSION, HEADER.size + len(body), 0))
    _CRC.pack_into(head, 12, checksum(head, [body]))
    return bytes(head) + body


def decode(data: bytes, file: str) -> Checkpoint | None:
    """The checkpoint in ``data``; None if it is torn or damaged."""
    if len(data) < HEADER.size:
        return None
    magic, version, length, crc = HEADER.unpack_from(data)
    if magic != MAGIC or length != len(data) or checksum(data, ()) != crc:
        return None
    if version not in _READABLE:
        raise UnsupportedVersion(file, version, VERSION)
    return msgspec.msgpack.decode(data[HEADER.size :], type=Checkpoint)


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
    return None, Damage(
        file=os.path.relpath(path, layout.directory),
        position=0,
        length=len(data),
        reason="checkpoint fails its checksum",
    )
