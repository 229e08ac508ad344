"""Changes of shape: rolling, truncating, trimming, deleting, retention, compaction.

All of them follow one rule: the journal says it first. An entry that orders the
change is synced, memory changes in one step with the commit's end, then the files do; a
crash in between is made up for by replaying the entry.

What takes long is done in steps, beside the commits and write-outs of a log at work
(see ``LogCore.begin_upkeep``); the owner of an idle log has all steps done at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import NamedTuple

from penstock.errors import OffsetOutOfRange, WriteFailed
from penstock.files import write_error
from penstock.log.compaction import compaction, gathering
from penstock.log.core import LogCore, UpkeepSteps
from penstock.log.cutting import (
    erase,
    forget_before,
    forget_behind,
    length_behind,
    partial_frame,
)
from penstock.log.frame_sizes import LookAtFrames
from penstock.log.journal.group import START, TRUNCATE, EntryKind
from penstock.log.options import TopicOptions
from penstock.log.store import is_aged
from penstock.log.survey import Survey
from penstock.log.topic import Segment, TopicLog

# Segments whose headers are looked at in one piece of work.
LOOKED_AT_AT_ONCE = 64
# Of segments with small frames, in one round: rewriting is to be beside other work, and
# what came one event at a time takes a second for 10 MiB.
GATHERED_IN_A_ROUND_BYTES = 1 << 26
# A smaller active segment is not sealed for its small frames: it is read fast enough.
LEAST_ACTIVE_BYTES = 1 << 20


class SegmentFacts(NamedTuple):
    end_offset: int
    length: int
    max_timestamp_ms: float


def new_start(
    sealed: Sequence[SegmentFacts],
    active_length: int,
    options: TopicOptions,
    now_ms: int,
) -> int | None:
    """Behind the sealed segments that have to go, oldest first; None: all stay."""
    size = active_length + sum(facts.length for facts in sealed)
    start = None
    for facts in sealed:
        if not (_too_old(facts, options, now_ms) or _too_large(size, options)):
            break
        start = facts.end_offset
        size -= facts.length
    return start


def _too_old(facts: SegmentFacts, options: TopicOptions, now_ms: int) -> bool:
    age_s = options.retention_age_s
    return age_s is not None and facts.max_timestamp_ms < now_ms - age_s * 1000


def _too_large(size: int, options: TopicOptions) -> bool:
    return options.retention_bytes is not None and size > options.retention_bytes


logger = logging.getLogger(__name__)


def drop(log: LogCore, topic: TopicLog, then: Callable[[], None] = lambda: None) -> int:
    """Delete a topic with the open group; the number of that group."""

    def stay() -> None:
        topic.going = False

    def go() -> None:
        log.catalog.remove(topic)
        log.flusher.drop(topic)
        then()

    topic.going = True
    group = log.intake.group
    group.undo.append(stay)
    group.last.append(go)
    return log.intake.enter(EntryKind.DELETE, topic.id, b"")


def start_at(log: LogCore, topic: TopicLog, offset: int) -> int:
    """Let a topic begin at ``offset`` with the open group; the number of that group."""

    def go() -> None:
        gone = forget_before(topic, offset)
        log.flusher.erase_soon(topic, gone)
        logger.info(
            "topic %s now starts at offset %s",
            topic.name,
            offset,
            extra={
                "action": "topic_trimmed",
                "topic": topic.name,
                "bytes": _size(gone),
            },
        )

    log.intake.group.then.append(go)
    return log.intake.enter(EntryKind.START, topic.id, START.pack(offset))


def delete(log: LogCore, topic: TopicLog) -> None:
    _settle(log)
    drop(log, topic)
    log.commit(sync=True)
    _erase(log)


def trim(log: LogCore, topic: TopicLog, offset: int) -> None:
    _check_offset(topic, offset)
    _settle(log)
    start_at(log, topic, offset)
    log.commit(sync=True)
    _erase(log)


def truncate(log: LogCore, topic: TopicLog, offset: int) -> None:
    _check_offset(topic, offset)
    _settle(log)
    _write_out(log)
    with _erasing(topic):
        kept, cut = partial_frame(topic, offset)
        length = length_behind(topic, cut)
    end = offset if kept is None else cut
    intake = log.intake
    intake.group.touch(topic)
    intake.enter(EntryKind.TRUNCATE, topic.id, TRUNCATE.pack(cut, end))
    intake.group.then.append(lambda: _cut_behind(log, topic, cut, end, length))
    topic.next_offset = end
    topic.low_id = None  # another event gets the offset, and no id twice
    topic.compacted_to = None
    if kept is not None:
        intake.put_back(topic, kept)
    log.commit(sync=True)


def roll(log: LogCore, topics: Sequence[TopicLog]) -> None:
    _settle(log)
    _write_out(log, topics)


def compact(log: LogCore, topic: TopicLog) -> int:
    return _done_here(log, _compaction(log, [topic]))


def maintain(log: LogCore) -> int:
    """Roll, retain and compact as the topics' options say; bytes set free."""
    return _done_here(log, maintenance(log))


def maintenance(log: LogCore) -> UpkeepSteps:
    """The steps of ``maintain``."""
    if work := Survey.planned(log):
        yield work
        if work.error is not None:
            raise work.error
        work.note()
    now_ms = log.now_ms()
    aged = [topic for topic in _present(log) if _roll_due(topic, now_ms)]
    yield from _rolled(log, aged)
    freed = yield from _trimmed(log, now_ms)
    freed += yield from _compaction(
        log, [t for t in _present(log) if t.options.compact]
    )
    freed += yield from _gathered(log)
    return freed


def _trimmed(log: LogCore, now_ms: int) -> UpkeepSteps:
    """Have retention take what it may, all of it with one group."""
    before = {topic.id: topic.bytes for topic in log.catalog.kept_up}
    trimmed, group = [], 0
    for topic in _present(log):
        start = _expired(topic, now_ms)
        if start is not None:
            group = start_at(log, topic, start)
            trimmed.append(topic)
    while log.outcome(group) == "pending":
        yield None
    return sum(before[topic.id] - topic.bytes for topic in trimmed)


def _compaction(log: LogCore, topics: Sequence[TopicLog]) -> UpkeepSteps:
    """Seal what topics have, so that all of it can be compacted, and do that."""
    changed = [
        (topic, topic.end_offset)
        for topic in topics
        if topic.start_offset < topic.end_offset != topic.compacted_to
    ]
    if not changed:
        return 0
    yield from _rolled(log, [topic for topic, _ in changed])
    # Those that every kept checkpoint will know as sealed: what grows while it is
    # taken, and is sealed later, may be known by the length that it had while it grew.
    sealed = {topic.id: _sealed(topic) for topic, _ in changed}
    yield from _secured(log)
    freed = 0
    failed: WriteFailed | None = None
    for topic, end in changed:
        if log.catalog.by_id(topic.id) is topic:
            try:
                freed += yield from _compacted(log, topic, sealed[topic.id])
                topic.compacted_to = end
            except WriteFailed as error:
                failed = failed or error  # others are compacted all the same
    if failed is not None:
        raise failed
    return freed


def may_gather(log: LogCore) -> bool:
    """Whether there may be segments of small frames that nobody has looked at."""
    catalog = log.catalog
    if catalog.may_gather is None:
        catalog.may_gather = any(map(_is_large, catalog))
    return catalog.may_gather


def _is_large(topic: TopicLog) -> bool:
    return topic.segment_count > 1 or topic.place[2] >= LEAST_ACTIVE_BYTES


def _gathered(log: LogCore) -> UpkeepSteps:
    """Have small frames gathered, in some of the sealed segments that have them."""
    unknown = [
        (topic, segment)
        for topic in (log.catalog if may_gather(log) else ())
        if topic.segment_count > 1 and not topic.going
        if not topic.options.compact  # done where they are compacted
        for segment in _sealed(topic)
        if not segment.gathered
    ]
    unknown += _grown_before(log)
    # If it is done with these, the next round finds none.
    log.catalog.may_gather = bool(unknown)
    small: list[tuple[TopicLog, Segment]] = []
    left = GATHERED_IN_A_ROUND_BYTES
    for first in range(0, len(unknown), LOOKED_AT_AT_ONCE):
        if left <= 0:
            break
        some = unknown[first : first + LOOKED_AT_AT_ONCE]
        work = LookAtFrames(log.files, some)
        yield work
        if work.error is not None:
            raise work.error
        for _, segment in some:
            segment.gathered = True
        for topic, segment in work.small:
            segment.gathered = False
            if left > 0:
                small.append((topic, segment))
                left -= segment.length
    if not small:
        return 0
    growing = [topic for topic, segment in small if not segment.sealed]
    yield from _rolled(log, growing)
    # As for compaction: each kept checkpoint is to know them as sealed.
    yield from _secured(log)
    freed = 0
    for topic, segment in small:
        if log.catalog.by_id(topic.id) is topic and segment in topic.segments:
            freed += yield from gathering(log, topic, segment)
    return freed


def _grown_before(log: LogCore) -> list[tuple[TopicLog, Segment]]:
    """Active segments that grew before this start, if they are large: an old topic may
    have all of its small frames there. They are sealed where that is so."""
    return [
        (topic, active)
        for topic in (log.catalog if may_gather(log) else ())
        if topic.place[2] >= LEAST_ACTIVE_BYTES and not topic.going
        if (active := topic.active) is not None and not topic.options.compact
        if active.created_ms is None and not (active.sealed or active.gathered)
    ]


def _sealed(topic: TopicLog) -> list[Segment]:
    """Those that are read from: of one in front of the start the file may be gone."""
    return [
        segment
        for segment in topic.segments[:-1]
        if segment.sealed and segment.end_offset > topic.start_offset
    ]


def _secured(log: LogCore) -> UpkeepSteps:
    """Have a checkpoint of this moment or later, and no other one left."""
    log.checkpoint_soon(keep=1)
    while log.checkpoint_wanted:
        yield None
        if log.flusher.erase_error is not None:  # which a checkpoint would forget
            log.call_checkpoint_off()
            raise log.flusher.erase_error
    if log.checkpoint_error is not None:
        raise log.checkpoint_error
    return 0


def _compacted(log: LogCore, topic: TopicLog, sealed: list[Segment]) -> UpkeepSteps:
    log.flusher.forget_written(topic)
    sealed = [segment for segment in sealed if segment in topic.segments]
    freed = 0
    if sealed:
        freed = yield from compaction(log, topic, sealed)
    logger.info(
        "topic %s compacted",
        topic.name,
        extra={"action": "topic_compacted", "topic": topic.name, "bytes": freed},
    )
    return freed


def _rolled(log: LogCore, topics: Sequence[TopicLog]) -> UpkeepSteps:
    """Have the active segments of topics sealed."""
    if topics:
        log.flusher.roll_soon(topics)
        while log.flusher.rolling:
            yield None
        if log.flusher.roll_error is not None:
            raise log.flusher.roll_error
    return 0


def _done_here(log: LogCore, steps: UpkeepSteps) -> int:
    """Do all steps here and now."""
    _settle(log)
    try:
        while True:
            work = next(steps)
            if work is None:
                log.commit(sync=True)
                log.store()
            else:
                work.run()
    except StopIteration as end:
        _erase(log)
        freed: int = end.value
        return freed


def _erase(log: LogCore) -> None:
    """Erase here and now what was ordered to go; if that fails it is done later."""
    while (work := log.begin_store()) is not None:
        work.run()
        log.end_store(work)
        if work.error is not None:
            raise work.error


def _present(log: LogCore) -> list[TopicLog]:
    """The topics whose options ask for something, and that stay."""
    return [topic for topic in log.catalog.kept_up if not topic.going]


def _size(segments: Iterable[Segment]) -> int:
    return sum(segment.length for segment in segments)


def _roll_due(topic: TopicLog, now_ms: int) -> bool:
    """The active segment is old enough, or holds only what retention lets go."""
    active, options = topic.active, topic.options
    if _old_in_memory(topic, now_ms):
        return True
    if active is None or active.length <= topic.header_length:
        return False
    if is_aged(active, options.segment_age_s, now_ms):
        return True
    if options.retention_age_s is None:
        return False
    return _youngest_ms(topic, active) < now_ms - options.retention_age_s * 1000


def _old_in_memory(topic: TopicLog, now_ms: int) -> bool:
    """Retention takes segments: what little-used topics have must become one."""
    options = topic.options
    if options.retention_age_s is None or topic.tail.all_written:
        return False
    age_s = min(options.retention_age_s, options.segment_age_s or inf)
    return topic.tail.unwritten()[0].latest_ms < now_ms - age_s * 1000


def _youngest_ms(topic: TopicLog, segment: Segment) -> float:
    """When the youngest event of a segment is from; what is not known yet is young.

    The next round's survey finds it out: to do that here may take a while.
    """
    if segment.index is None and segment.max_timestamp_ms is None:
        return inf
    return topic.max_timestamp_of(segment)


def _expired(topic: TopicLog, now_ms: int) -> int | None:
    options = topic.options
    if options.retention_age_s is None and options.retention_bytes is None:
        return None
    sealed, active = topic.segments[:-1], topic.active
    aged = options.retention_age_s is not None
    facts = [
        SegmentFacts(s.end_offset, s.length, _youngest_ms(topic, s) if aged else 0)
        for s in sealed
    ]
    return new_start(facts, active.length if active else 0, options, now_ms)


def _check_offset(topic: TopicLog, offset: int) -> None:
    if not topic.start_offset <= offset <= topic.end_offset:
        raise OffsetOutOfRange(topic.name, offset, topic.start_offset, topic.end_offset)


def _settle(log: LogCore) -> None:
    log.require_idle()
    log.commit()


def _write_out(log: LogCore, roll_topics: Iterable[TopicLog] = ()) -> None:
    work = log.flusher.begin_write_out(log.now_ms(), roll=roll_topics)
    work.run()
    log.flusher.finish(work)
    if work.error is not None:
        raise work.error


def _cut_behind(
    log: LogCore, topic: TopicLog, cut: int, end: int, length: int | None
) -> None:
    """Cut before anything is written behind; no checkpoint comes until it is done."""
    segment_cache = log.catalog.segment_cache
    log.flusher.forget(topic)
    gone = forget_behind(topic, segment_cache, cut, end, length)
    log.flusher.let_go(gone)
    log.flusher.unfinished.append(lambda: erase(log.files, segment_cache, topic, gone))
    log.flusher.finish_erasures()


@contextmanager
def _erasing(topic: TopicLog) -> Iterator[None]:
    """An error of the file system as one of ours; what was ordered is done later."""
    try:
        yield
    except OSError as error:
        raise write_error(topic.directory, "erasing events of", error) from error
