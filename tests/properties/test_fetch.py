"""Whatever range is fetched, however little fits: it is what plain reading finds.

Topics have segments, a tail, gaps of compaction and a beginning that retention moves,
also between two fetches.
"""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.fetching import Range, checked
from penstock.gateway.native_fetch import Fetcher
from penstock.gateway.options import NativeOptions
from penstock.log import Columns, LogOptions
from penstock.model.event import Event
from penstock.wire.native import (
    Fetch,
    Fetched,
    FrameSplitter,
    RequestRefused,
    decode_server,
)
from tests.unit.delivery.scene import Scene

SMALL = LogOptions(
    journal_file_bytes=20_000,
    checkpoint_bytes=8_000,
    write_out_bytes=2_000,
    tail_cache_bytes=2_000,
)
KEYS = [None, b"a", b"b", b"c"]
STEPS = 30


class Life:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.scene = Scene(log=SMALL)
        self.met: set[str] = set()

    def step(self) -> None:
        draw = self.random.random()
        log = self.scene.log
        if draw < 0.6:
            self._publish()
        elif draw < 0.75:
            log.roll("t")
        elif draw < 0.85:
            if log.compact("t"):
                self.met.add("compacted")
        elif draw < 0.95:
            self._trim()
        else:
            self.scene.restart(self.random.choice(["kill", "close"]))

    def _publish(self) -> None:
        count = self.random.randint(1, 8)
        size = self.random.choice([1, 30, 600])
        texts = [self.random.randbytes(size) for _ in range(count)]
        keys = self.random.choices(KEYS, k=count)
        self.scene.broker.publish("t", Columns(texts, 5, keys=keys))
        self.scene.commit()

    def _trim(self) -> None:
        topic = self.scene.log.topic("t")
        ahead = topic.end_offset - topic.start_offset
        self.scene.log.trim(
            "t", topic.start_offset + self.random.randint(0, ahead // 2)
        )
        self.met.add("trimmed")

    def read(self, offset: int, end: int) -> list[Event]:
        """What plain reading finds."""
        found: list[Event] = []
        while batches := self.scene.log.read("t", offset, 1000):
            found += [event for batch in batches for event in batch.events()]
            offset = batches[-1].end_offset
        return [event for event in found if event.offset < end]

    def fetch(self, offset: int, end: int, max_bytes: int) -> Range | RequestRefused:
        fetcher = Fetcher(self.scene.broker, NativeOptions(max_fetch_bytes=4096))
        fetcher.put(Fetch(1, "t", offset, end, max_bytes))
        data = fetcher.take()
        assert data is not None
        (body,) = FrameSplitter(1 << 20).feed(data)
        message = decode_server(body)
        if isinstance(message, RequestRefused):
            return message
        assert isinstance(message, Fetched)
        return checked(message, "t", offset, end)

    def check(self) -> None:
        topic, random = self.scene.log.topic("t"), self.random
        offset = random.randint(topic.start_offset, topic.end_offset)
        end = random.randint(offset, topic.end_offset + 3)
        wanted, found = self.read(offset, end), []
        max_bytes = random.choice([1, 700, 100_000])
        while True:
            part = self.fetch(offset, end, max_bytes)
            if isinstance(part, RequestRefused):
                assert part.error == "OffsetOutOfRange"
                assert offset < topic.start_offset, "retention went past it, no other"
                self.met.add("overrun")
                return
            found += [event for batch in part.batches for event in batch.events()]
            assert part.next_offset > offset or part.next_offset in (
                end,
                part.end_offset,
            )
            if (offset := part.next_offset) >= min(end, part.end_offset):
                break
            if random.random() < 0.1:
                self._trim()
                # What was trimmed while nobody had fetched it is not there to be read.
                start = topic.start_offset
                wanted = [
                    one for one in wanted if one.offset < offset or one.offset >= start
                ]
        assert found == wanted
        assert offset == min(end, topic.end_offset)


def live(seed: int) -> set[str]:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
        life.check()
    return life.met


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 32))
def test_fetching_a_range_is_plain_reading(seed: int) -> None:
    live(seed)


def test_the_lives_meet_everything_that_they_are_about() -> None:
    met: set[str] = set()
    for seed in range(30):
        met |= live(seed)

    assert met == {"compacted", "trimmed", "overrun"}
