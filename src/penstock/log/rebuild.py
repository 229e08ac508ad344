"""Finding topics from their segment files alone, when no checkpoint is left."""

from __future__ import annotations

from penstock.errors import CorruptRecord
from penstock.files import FileSystem
from penstock.log.checkpoint import TopicRecord
from penstock.log.damage import Damage
from penstock.log.index import Index
from penstock.log.layout import SEGMENT_SUFFIX, Layout, numbered, segment_file
from penstock.log.options import TopicOptions
from penstock.log.segment import SegmentHeader, build_index, read_header
from penstock.log.topic import ReportDamage


def find_topic(
    files: FileSystem, layout: Layout, directory: str, report: ReportDamage
) -> TopicRecord | None:
    """The topic in a folder: its name and id from the newest good segment header."""
    bases = numbered(files.list(directory), SEGMENT_SUFFIX)
    for base in reversed(bases):
        path = segment_file(directory, base)
        try:
            header = read_header(files, path, layout.relative(path))
        except CorruptRecord as error:
            report(
                Damage(
                    file=error.file,
                    position=error.position,
                    length=error.length,
                    reason=error.reason,
                )
            )
            continue
        index = _good_part(files, path, header)
        return TopicRecord(
            id=header.topic_id,
            name=header.topic,
            options=TopicOptions(),
            start_offset=bases[0],
            end_offset=index.end_offset,
            active_base=base,
            active_length=index.length,
        )
    return None


def _good_part(files: FileSystem, path: str, header: SegmentHeader) -> Index:
    """The index of the good frames that a last segment begins with."""
    handle = files.open(path)
    bad: list[int] = []

    def index_up_to(end: int) -> Index:
        return build_index(
            files,
            handle,
            start=header.length,
            base_offset=header.base_offset,
            end=end,
            on_damage=lambda at, *_: bad.append(at),
        )

    try:
        index = index_up_to(files.size(handle))
        return index_up_to(bad[0]) if bad else index
    finally:
        files.close(handle)
