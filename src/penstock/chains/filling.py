"""Filling the index: every batch has a row, and every event with a parent or own id.

Topics that have grown wait in a queue and are taken in turns, so much at a time: a
step is bounded in what it reads and adds. Its *effort* is counted in about
microseconds.

Before a topic is gone on with, the last event that was indexed is compared with what
is known of it: after a truncation, or in a directory put together from backups, there
is another one in its place, and the topic is indexed from its start.
"""

from __future__ import annotations

from penstock.chains.keys import batch_key, text_key
from penstock.chains.store import TABLES, ChainIndex, IndexedTopic, IndexRows
from penstock.log import Batch, BrokerLog, Column, FrameHeader, StoredTopic
from penstock.model import ids

# What one topic is read by in its turn.
READ_BYTES = 1 << 18
# Events of a large batch that are looked at before the effort is.
SLICE_EVENTS = 500
# A compacted topic is indexed anew when this many rows, and this many times what it
# had, were added: most of them stand for events that are gone.
RENEW_ROWS = 10_000
RENEW_TIMES = 4
# Rows looked at for dead ones, for each that is added.
SWEEP_TIMES = 2

# The bytes of a generated id behind its time: gathering leaves them as they are.
_COUNTED = 10

# Effort.
_PER_TOPIC = 20
_PER_READ = 30
_PER_BATCH = 15
_PER_ROW = 8
_BYTES_PER_UNIT = 1000


class Filler:
    def __init__(self, log: BrokerLog, store: ChainIndex) -> None:
        self._log = log
        self._store = store
        self._kept: tuple[int, list[Batch]] | None = None
        """A topic and what was read of it and is not indexed."""
        self._table = 0
        self.waiting: dict[int, None] = {}
        """Ids of topics that may have something to index, the next one first."""
        self.runs: dict[int, IndexedTopic] = {}
        """By the id of their topic."""
        self.topics: dict[int, int] = {}
        """The topics of runs."""
        self.looked: set[int] = set()
        """Topics whose last indexed event was seen to be there, since they grew."""
        self.reload()

    def reload(self) -> None:
        """Go on from what is stored: what was done last may not be."""
        self._kept = None
        self.looked.clear()
        self.runs = {run.topic: run for run in self._store.runs()}
        self.topics = {run.number: run.topic for run in self.runs.values()}
        for topic in self._log.each_topic():
            self.note(topic)

    def note(self, topic: StoredTopic) -> None:
        """A topic has grown; Penstock's own have no chains."""
        if topic.name[0] != "$":
            self.waiting[topic.id] = None
            self.looked.discard(topic.id)

    @property
    def behind(self) -> int:
        """How many offsets are not indexed yet."""
        return sum(map(self._missing, self.waiting))

    def step(self, effort: int) -> int:
        """Index what that effort is enough for; what was spent, 0: nothing to do."""
        if not self.waiting:
            return 0
        left = effort
        rows = IndexRows()
        touched: dict[int, IndexedTopic] = {}
        with self._store.transaction():
            while self.waiting and left > 0:
                topic_id = self._kept[0] if self._kept else next(iter(self.waiting))
                self.waiting.pop(topic_id, None)
                topic = self._log.topic_by_id(topic_id)
                if topic is None:
                    self._kept = None
                    continue
                # What was kept may be of events that were truncated since: look again.
                unsure = self._kept is not None
                run, spent = self._advance(topic, rows, left)
                left -= _PER_TOPIC + spent
                touched[run.topic] = run
                if unsure:
                    self.looked.discard(topic_id)
                else:
                    self.looked.add(topic_id)
                if unsure or self._missing(topic_id):
                    self.waiting[topic_id] = None
            self._store.add(rows)
            for run in touched.values():
                self._store.keep(run)
            if rows:
                self._sweep(SWEEP_TIMES * len(rows))
        return effort - left

    def _missing(self, topic_id: int) -> int:
        topic, run = self._log.topic_by_id(topic_id), self.runs.get(topic_id)
        if topic is None:
            return 0
        start = topic.start_offset if run is None else max(run.next, topic.start_offset)
        return max(topic.end_offset - start, 0)

    def _advance(
        self, topic: StoredTopic, rows: IndexRows, effort: int
    ) -> tuple[IndexedTopic, int]:
        """Index the next part of a topic, of one read at most."""
        run, batches, spent = self._next(topic)
        before, first = len(rows), True
        while batches and (first or spent < effort):
            first = False
            batch = batches.pop(0)
            header, done = batch.header, batch.header.end_offset
            rest, cost = self._index(batch, run.number, rows)
            if rest is not None:
                batches.insert(0, rest)
                done = rest.base_offset
            spent += cost
            run.next = done
            run.last = _last_id(header, done - 1)
        run.rows += len(rows) - before
        if batches:
            self._kept = (topic.id, batches)
        elif run.next >= topic.end_offset:
            self._reached_end(topic, run)
        return run, spent

    def _next(self, topic: StoredTopic) -> tuple[IndexedTopic, list[Batch], int]:
        """A topic's run, the batches to go on with, and the effort to read them."""
        run, kept = self.runs.get(topic.id) or self._begin(topic), self._kept
        self._kept = None
        if kept is not None and kept[1][0].base_offset == run.next:
            return run, kept[1], 0
        offset = max(run.next, topic.start_offset)
        last = run.next - 1
        batches: list[Batch] = []
        if run.next > topic.end_offset:
            run, offset = self._begin(topic), topic.start_offset
        elif run.last and last >= topic.start_offset:
            batches = topic.whole_batches(last, READ_BYTES)
            if not _is_continued(batches, run):
                run, offset = self._begin(topic), topic.start_offset
                batches = []
        cost = _PER_READ + _cost(batches)
        batches = [part for one in batches if len(part := one.since(offset))]
        if not batches and offset < topic.end_offset:
            batches = topic.read(offset, READ_BYTES)
            cost += _PER_READ + _cost(batches)
            if not batches:  # damage to the end, or compaction took it
                run.next, run.last = topic.end_offset, b""
        return run, batches, cost

    def _index(
        self, batch: Batch, run: int, rows: IndexRows
    ) -> tuple[Batch | None, int]:
        """Rows for a slice of a batch; what is left of it, and the effort."""
        header, before = batch.header, len(rows)
        rows.batches += _batch_rows(batch, run)
        columns = batch.columns()
        named, caused = Column.ID in columns, Column.PARENT in columns
        if not named and not caused:
            return None, _PER_ROW * (len(rows) - before)
        cut = min(batch.lo + SLICE_EVENTS, batch.hi)
        part = Batch(batch.topic, batch.body, header, batch.lo, cut)
        offsets = part.offsets()
        if named:
            found = zip(part.ids(), offsets, strict=True)
            rows.ids += [(text_key(text), run, offset) for text, offset in found]
        if caused:
            causes = zip(part.parents(), offsets, strict=True)
            rows.parents += [
                (text_key(text), run, offset)
                for text, offset in causes
                if text is not None
            ]
        cost = _PER_BATCH + len(part) + _PER_ROW * (len(rows) - before)
        if cut == batch.hi:
            return None, cost
        return Batch(batch.topic, batch.body, header, cut, batch.hi), cost

    def _begin(self, topic: StoredTopic) -> IndexedTopic:
        before = self.runs.get(topic.id)
        if before is not None:
            del self.topics[before.number]
        run = self._store.begin_run(topic.id, topic.start_offset)
        self.runs[topic.id] = run
        self.topics[run.number] = topic.id
        return run

    def _reached_end(self, topic: StoredTopic, run: IndexedTopic) -> None:
        if run.settled is None:
            run.settled = run.rows
        if topic.options.compact and run.rows > RENEW_ROWS + RENEW_TIMES * run.settled:
            self._begin(topic)

    def _sweep(self, count: int) -> None:
        """Look at some rows, table by table, so that dead ones do not gather."""
        for _ in TABLES:
            seen = self._store.sweep(TABLES[self._table], count)
            if seen == count:
                return
            count -= seen
            self._table = (self._table + 1) % len(TABLES)
            if self._table == 0:
                self._note_starts()

    def _note_starts(self) -> None:
        """Tell the index what retention and deletion took."""
        for run in list(self.runs.values()):
            topic = self._log.topic_by_id(run.topic)
            if topic is None:
                self._store.end_run(run)
                del self.runs[run.topic], self.topics[run.number]
            elif topic.start_offset != run.start:
                run.start = topic.start_offset
                self._store.keep(run)


def _is_continued(batches: list[Batch], run: IndexedTopic) -> bool:
    """Whether what was indexed last is what is read there; in doubt, yes."""
    last = run.next - 1
    if not batches:
        return True
    header = batches[0].header
    if not header.base_offset <= last < header.end_offset:
        return True  # compaction took it
    return _last_id(header, last)[-_COUNTED:] == run.last[-_COUNTED:]


def _last_id(header: FrameHeader, offset: int) -> bytes:
    """The generated id of an offset; its time is left out of account."""
    return ids.advance(header.id_base, offset - header.base_offset)


def _batch_rows(batch: Batch, run: int) -> list[tuple[int, int, int, int]]:
    """One row, or one for each time that generated ids of the batch say."""
    header = batch.header
    value = int.from_bytes(header.id_base, "big")
    if not batch.ids_by_time:
        return [(batch_key(value), run, header.base_offset, header.span)]
    firsts: dict[int, int] = {}
    for stamp, offset in zip(batch.timestamps(), batch.offsets(), strict=True):
        firsts.setdefault(stamp, offset)
    return [
        (batch_key(ids.at_time(value, stamp)), run, offset, header.end_offset - offset)
        for stamp, offset in firsts.items()
    ]


def _cost(batches: list[Batch]) -> int:
    return sum(batch.header.length for batch in batches) // _BYTES_PER_UNIT
