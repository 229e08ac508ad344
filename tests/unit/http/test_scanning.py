from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UnknownTopic
from penstock.http import scanning
from penstock.http.event_filter import EventFilter
from penstock.http.scanning import Scanned, backwards, batches, forwards
from penstock.http.search import parsed
from penstock.log import Columns, Log


def look_for(text: str = "", limit: int = 10, max_scan: int = 1000) -> Scanned:
    event_filter = EventFilter(search=parsed(text) if text else None)
    return Scanned(event_filter=event_filter, limit=limit, max_scan=max_scan)


def numbers(look: Scanned) -> list[int]:
    return [json.loads(event)["payload"]["n"] for event in look.events]


@pytest.fixture
def log(tmp_path: Path):
    """100 events in batches of 7."""
    with Log.open(tmp_path / "log") as log:
        fill(log, 100, 7)
        yield log


def fill(log: Log, count: int, batch: int) -> None:
    log.create_topic("t")
    for first in range(0, count, batch):
        last = min(first + batch, count)
        rows = [b'{"n":%d,"odd":%d}' % (n, n % 2) for n in range(first, last)]
        log.append("t", Columns(rows, 5))
        log.commit()


def test_a_look_begins_where_it_is_told(log: Log) -> None:
    look = look_for(limit=5)

    behind = asyncio.run(forwards(log, "t", 33, 100, look))

    assert (numbers(look), behind) == ([33, 34, 35, 36, 37], 38)
    assert look.scanned == 5


def test_a_step_back_reads_few_events_if_they_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MAX_STEP_BYTES", 10_000)
    read: list[int] = []

    async def counted(log: Log, topic: str, start: int, end: int):
        read.append(end - start)
        async for batch in batches(log, topic, start, end):
            yield batch

    monkeypatch.setattr(scanning, "batches", counted)
    with Log.open(tmp_path / "large") as log:
        log.create_topic("t")
        for number in range(50):
            row = b'{"n":%d,"x":"%s"}' % (number, b"x" * 2000)
            log.append("t", Columns([row], 5))
            log.commit()
        look = look_for(limit=10)
        asyncio.run(backwards(log, "t", 0, 50, look))

    assert numbers(look) == list(range(40, 50))
    assert max(read) <= 5


def test_a_look_back_ends_where_it_is_told(log: Log) -> None:
    look = look_for(limit=5)

    first = asyncio.run(backwards(log, "t", 0, 33, look))

    assert (numbers(look), first) == ([28, 29, 30, 31, 32], 28)


def test_a_search_that_has_looked_enough_says_where_to_go_on(log: Log) -> None:
    look = look_for("n=99", max_scan=30)

    behind = asyncio.run(forwards(log, "t", 0, 100, look))

    assert (numbers(look), behind, look.scanned) == ([], 30, 30)


def test_a_search_back_finds_the_last(log: Log) -> None:
    look = look_for("odd=1", limit=3)

    first = asyncio.run(backwards(log, "t", 0, 100, look))

    assert (numbers(look), first) == ([95, 97, 99], 95)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(0, 100),
    end=st.integers(0, 100),
    limit=st.integers(1, 40),
    step=st.integers(1, 9),
    text=st.sampled_from(["", "odd=1", "n>50", "n=77", "n<3"]),
)
def test_looks_are_like_slices_of_a_list(
    tmp_path_factory: pytest.TempPathFactory,
    start: int,
    end: int,
    limit: int,
    step: int,
    text: str,
) -> None:
    with Log.open(tmp_path_factory.mktemp("log")) as log:
        fill(log, 100, 1 + limit % 11)
        wanted = [n for n in range(start, end) if parsed(text).takes(_payload(n))]
        there, back = look_for(text, limit), look_for(text, limit)

        behind = asyncio.run(forwards(log, "t", start, end, there))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scanning, "FIRST_STEP", step)
            patch.setattr(scanning, "MAX_STEP", step)
            first = asyncio.run(backwards(log, "t", start, end, back))

        assert numbers(there) == wanted[:limit]
        assert numbers(back) == wanted[-limit:]
        assert [n for n in wanted if n < behind] == wanted[:limit]
        assert [n for n in wanted if n >= first] == wanted[-limit:]


def _payload(number: int) -> bytes:
    return b'{"n":%d,"odd":%d}' % (number, number % 2)


def test_pages_of_a_search_find_everything_once(log: Log) -> None:
    found, place = [], 0
    while place < 100:
        look = look_for("odd=1", limit=4, max_scan=9)
        place = asyncio.run(forwards(log, "t", place, 100, look))
        found += numbers(look)

    assert found == list(range(1, 100, 2))


def test_an_answer_has_about_so_many_bytes_and_one_event_at_least(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MAX_ANSWER_BYTES", 1)
    there, back = look_for(), look_for()

    behind = asyncio.run(forwards(log, "t", 10, 100, there))
    first = asyncio.run(backwards(log, "t", 0, 90, back))

    assert (numbers(there), behind) == ([10], 11)
    assert (numbers(back), first) == ([89], 89)


def test_what_retention_took_is_left_out(log: Log) -> None:
    async def scene() -> list[int]:
        found: list[int] = []
        async for batch in batches(log, "t", 0, 100):
            found += batch.offsets()
            if found[-1] < 50:
                log.trim("t", 60)
        return found

    found = asyncio.run(scene())

    assert found[-40:] == list(range(60, 100))


def test_a_topic_that_was_made_anew_is_another_one(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "READ_BYTES", 1)

    async def scene() -> list[int]:
        found: list[int] = []
        async for batch in batches(log, "t", 0, 100):
            found += batch.offsets()
            if len(found) == 7:
                log.delete_topic("t")
                fill(log, 50, 50)
        return found

    assert asyncio.run(scene()) == list(range(7))
    with pytest.raises(UnknownTopic):
        asyncio.run(forwards(log, "absent", 0, 10, look_for()))


def test_others_have_a_turn_between_two_reads(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "READ_BYTES", 1)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scene() -> None:
        counting = asyncio.create_task(count())
        await forwards(log, "t", 0, 100, look_for("n=99"))
        counting.cancel()

    asyncio.run(scene())

    assert turns > 10


def test_a_large_frame_comes_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "READ_BYTES", 1 << 12)

    async def sizes(log: Log) -> list[int]:
        return [len(batch) async for batch in batches(log, "t", 0, 2000)]

    with Log.open(tmp_path / "log") as log:
        fill(log, 2000, 2000)

        found = asyncio.run(sizes(log))

    assert sum(found) == 2000
    assert max(found) < 400
