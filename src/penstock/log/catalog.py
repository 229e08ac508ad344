"""All topics of a data directory, by name and by id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from penstock.errors import UnknownTopic
from penstock.files import FileSystem
from penstock.log.checkpoint import TopicRecord
from penstock.log.layout import Layout
from penstock.log.options import TopicOptions
from penstock.log.segment_cache import SegmentCache
from penstock.log.topic import ReportDamage, TopicHome, TopicLog


class Catalog:
    def __init__(self, files: FileSystem, layout: Layout, report: ReportDamage) -> None:
        self.segment_cache = SegmentCache(files)
        self._home = TopicHome(
            files=files, layout=layout, segment_cache=self.segment_cache, report=report
        )
        self._options = TopicOptions()
        """Those of the last topic: most have the same."""
        self._kept_up: dict[int, TopicLog] = {}
        """Topics that retention and compaction have to look at."""
        self.may_gather: bool | None = None
        """Whether there may be segments of small frames; None: nobody has looked."""
        self._by_id: dict[int, TopicLog] = {}
        self._by_name: dict[str, TopicLog] = {}
        self.next_id = 1

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[TopicLog]:
        return iter(self._by_id.values())

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> TopicLog:
        topic = self._by_name.get(name)
        if topic is None:
            raise UnknownTopic(name)
        return topic

    def find(self, names: Iterable[str]) -> dict[str, TopicLog]:
        """Those of some topics that there are, by name."""
        known, names = self._by_name, [*names]
        try:
            return dict(zip(names, map(known.__getitem__, names), strict=True))
        except KeyError:
            return {name: known[name] for name in names if name in known}

    def by_id(self, topic_id: int) -> TopicLog | None:
        return self._by_id.get(topic_id)

    def add(self, record: TopicRecord) -> TopicLog:
        """Take up a topic as a journal entry or a checkpoint describes it."""
        topic = TopicLog(
            self._home, topic_id=record.id, name=record.name, options=record.options
        )
        self.set_options(topic, record.options)
        topic.start_offset = record.start_offset
        topic.attach(
            record.active_base,
            record.active_length,
            record.end_offset,
            record.first_base,
        )
        self._by_id[record.id] = topic
        self._by_name[record.name] = topic
        self.next_id = max(self.next_id, record.id + 1)
        return topic

    @property
    def kept_up(self) -> Collection[TopicLog]:
        """Topics whose options have something done to them now and then."""
        return self._kept_up.values()

    def set_options(self, topic: TopicLog, options: TopicOptions) -> None:
        if options != self._options:
            self._options = options
        topic.options = self._options
        if options.kept_up:
            self._kept_up[topic.id] = topic
        else:
            self._kept_up.pop(topic.id, None)

    def adopt(self, record: TopicRecord) -> TopicLog:
        """Add a topic found on disk; of two of one name, the newer is the topic."""
        other = self._by_name.get(record.name)
        if other is not None:
            if other.id > record.id:
                return other
            self.remove(other)
        return self.add(record)

    def remove(self, topic: TopicLog) -> None:
        del self._by_id[topic.id]
        self._kept_up.pop(topic.id, None)
        del self._by_name[topic.name]

    def close(self) -> None:
        self.segment_cache.close()
