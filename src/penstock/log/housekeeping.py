"""Changes of shape: rolling, truncating, trimming, deleting, retention, compaction.

All of them follow one rule: the journal says it first. An entry that orders the
change is synced, memory changes in one step with the commit's end, then the files do; a
crash in between is made up for by replaying the entry. They need an idle log and are
done when they return.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf

from penstock.errors import OffsetOutOfRange
from penstock.files import write_error
from penstock.log.compaction import Compaction
from penstock.log.core import LogCore
from penstock.log.cutting import (
    erase,
    forget_before,
    forget_behind,
    length_behind,
    remove_folder,
)
from penstock.log.group import START, TRUNCATE, Kind
from penstock.log.retention import SegmentFacts, new_start
from penstock.log.segment import read_header
from penstock.log.store import is_aged
from penstock.log.topic import Segment, Topic

logger = logging.getLogger(__name__)


def delete(log: LogCore, topic: Topic) -> None:
    _settle(log)
    log.intake.enter(Kind.DELETE, topic.id, b"")
    log.intake.group.then.append(lambda: _forget(log, topic))
    log.commit(sync=True)
    with _erasing(topic):
        remove_folder(log.files, topic)


def truncate(log: LogCore, topic: Topic, offset: int) -> None:
    _check_offset(topic, offset)
    _settle(log)
    _write_out(log)
    with _erasing(topic):
        kept, cut = _partial_frame(topic, offset)
        length = length_behind(topic, cut)
    end = offset if kept is None else cut
    intake = log.intake
    intake.group.touch(topic)
    intake.enter(Kind.TRUNCATE, topic.id, TRUNCATE.pack(cut, end))
    intake.group.then.append(lambda: _cut_behind(log, topic, cut, end, length))
    topic.next_offset = end
    if kept is not None:
        intake.put_back(topic, kept)
    log.commit(sync=True)


def trim(log: LogCore, topic: Topic, offset: int) -> int:
    """Forget events before ``offset``; bytes of the segments that went."""
    _check_offset(topic, offset)
    _settle(log)
    log.intake.enter(Kind.START, topic.id, START.pack(offset))
    gone: list[Segment] = []
    log.intake.group.then.append(lambda: gone.extend(forget_before(topic, offset)))
    log.commit(sync=True)
    freed = sum(segment.length for segment in gone)
    log.keeper.let_go(gone)
    with _erasing(topic):
        erase(log.files, log.catalog.shelf, topic, gone)
    logger.info(
        "topic %s now starts at offset %s",
        topic.name,
        offset,
        extra={"action": "topic_trimmed", "topic": topic.name, "bytes": freed},
    )
    return freed


def roll(log: LogCore, topics: Sequence[Topic]) -> None:
    _settle(log)
    _write_out(log, topics)


def compact(log: LogCore, topic: Topic) -> int:
    if topic.end_offset == topic.start_offset:
        return 0
    roll(log, [topic])
    # Only one checkpoint is kept, so that none is left that knows the segments by
    # the lengths they had while they grew.
    log.checkpoint(keep=1)
    log.keeper.forget(topic)
    sealed = topic.segments[:-1]
    if not sealed:
        return 0
    for segment in sealed:
        _created_ms(log, topic, segment)
    try:
        freed = Compaction(log.files, log.catalog.shelf, topic).run(sealed)
    except OSError as error:
        raise write_error(topic.directory, "compacting", error) from error
    logger.info(
        "topic %s compacted",
        topic.name,
        extra={"action": "topic_compacted", "topic": topic.name, "bytes": freed},
    )
    return freed


def maintain(log: LogCore) -> int:
    """Roll, retain and compact as the topics' options say; bytes set free."""
    _settle(log)
    now_ms = log.now_ms()
    aged = [topic for topic in log.catalog if _roll_due(log, topic, now_ms)]
    if aged:
        roll(log, aged)
    freed = 0
    for topic in list(log.catalog):
        start = _expired(topic, now_ms)
        if start is not None:
            freed += trim(log, topic, start)
    for topic in list(log.catalog):
        if topic.options.compact:
            freed += compact(log, topic)
    return freed


def _roll_due(log: LogCore, topic: Topic, now_ms: int) -> bool:
    """The active segment is old enough, or holds only what retention lets go."""
    active, options = topic.active, topic.options
    if _old_in_memory(topic, now_ms):
        return True
    if active is None or active.length <= topic.header_length:
        return False
    if options.segment_age_s is not None:
        _created_ms(log, topic, active)
        if is_aged(active, options.segment_age_s, now_ms):
            return True
    if options.retention_age_s is None:
        return False
    return topic.max_timestamp_of(active) < now_ms - options.retention_age_s * 1000


def _old_in_memory(topic: Topic, now_ms: int) -> bool:
    """Retention takes segments: what little-used topics have must become one."""
    options, frames = topic.options, topic.tail.unwritten()
    if options.retention_age_s is None or not frames:
        return False
    age_s = min(options.retention_age_s, options.segment_age_s or inf)
    return frames[0].header.max_timestamp_ms < now_ms - age_s * 1000


def _expired(topic: Topic, now_ms: int) -> int | None:
    options = topic.options
    if options.retention_age_s is None and options.retention_bytes is None:
        return None
    sealed, active = topic.segments[:-1], topic.active
    facts = [
        SegmentFacts(s.end_offset, s.length, topic.max_timestamp_of(s)) for s in sealed
    ]
    return new_start(facts, active.length if active else 0, options, now_ms)


def _created_ms(log: LogCore, topic: Topic, segment: Segment) -> None:
    """Know when a segment was begun, which only its header says after a restart."""
    if segment.created_ms is None and log.files.exists(segment.path):
        header = read_header(log.files, segment.path, segment.path)
        segment.created_ms = header.created_ms


def _check_offset(topic: Topic, offset: int) -> None:
    if not topic.start_offset <= offset <= topic.end_offset:
        raise OffsetOutOfRange(topic.name, offset, topic.start_offset, topic.end_offset)


def _settle(log: LogCore) -> None:
    log.require_idle()
    log.commit()


def _write_out(log: LogCore, roll_topics: Iterable[Topic] = ()) -> None:
    work = log.keeper.begin_write_out(log.now_ms(), roll=roll_topics)
    work.run()
    log.keeper.finish(work)
    if work.error is not None:
        raise work.error


def _partial_frame(topic: Topic, offset: int) -> tuple[bytearray | None, int]:
    """Where to cut frames off for ``offset``, and what to put back of the first."""
    if offset == topic.end_offset:
        return None, offset
    whole = topic.written_frame(offset)
    if whole is None:
        return None, offset
    base = whole.header.base_offset
    kept = whole.before(offset)
    if not len(kept):
        return None, min(base, offset)
    columns = kept.take(list(range(len(kept))))
    columns.span = offset - base
    return columns.encode(base, whole.header.id_base), base


def _forget(log: LogCore, topic: Topic) -> None:
    log.keeper.forget(topic)
    log.catalog.remove(topic)
    log.keeper.let_go(topic.segments)
    for segment in topic.segments:
        log.catalog.shelf.drop(segment.path)


def _cut_behind(
    log: LogCore, topic: Topic, cut: int, end: int, length: int | None
) -> None:
    """Cut before anything is written behind; no checkpoint comes until it is done."""
    shelf = log.catalog.shelf
    log.keeper.forget(topic)
    gone = forget_behind(topic, shelf, cut, end, length)
    log.keeper.let_go(gone)
    log.keeper.unfinished.append(lambda: erase(log.files, shelf, topic, gone))
    log.keeper.finish_erasures()


@contextmanager
def _erasing(topic: Topic) -> Iterator[None]:
    """An error of the file system as one of ours; what was ordered is done later."""
    try:
        yield
    except OSError as error:
        raise write_error(topic.directory, "erasing events of", error) from error
