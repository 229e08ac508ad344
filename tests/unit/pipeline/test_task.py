"""The Arrow functions: what they write, and what they tell; without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.pipeline import notes
from penstock.pipeline.batch import COLUMNS, Totals
from penstock.pipeline.task import NOTE, TAG, USER, Task
from penstock.pipeline.tweet import NO_TWEET
from tests.unit.pipeline.stores import Lists
from tests.unit.pipeline.tweets import payload, tagged, tweet

Json = dict[str, Any]


def test_a_task_writes_the_newest_and_tells_sums_and_a_note(store: Lists) -> None:
    retweet = tagged("2", "sea", user="b", retweeted_status=tweet("1", user="a"))
    batch = events(tagged("1", "sun", user="a"), {}, retweet)

    (told,) = Task(store).run(iter([batch]))

    first, *others = told.to_pylist()
    assert others == [None, None] or others == [[], []]
    assert [(name, list(rows)) for name, rows in store.written] == [
        ("tweets", ["1", "2"]),
        ("users", ["a", "b"]),
    ]
    sums = {(row["kind"], row["key"]): row for row in first}
    assert {key: row["count"] for key, row in sums.items()} == {
        (USER, "a"): 2,
        (USER, "b"): 1,
        (TAG, "sun"): 1,
        (TAG, "sea"): 1,
        (NOTE, "0.0"): 1,
    }
    assert sums[USER, "a"]["sum"] == 0.6
    assert sums[USER, "a"]["last"] == {
        "version": 42,
        "rank": -1,
        "told": '[0.3,"1","name of a"]',
    }
    last = sums[NOTE, "0.0"]["last"]
    note = notes.decode(last["told"])
    assert last["version"] == 40
    assert [(one.offset, one.reason) for one in note.strays] == [(41, NO_TWEET)]
    assert {at: sum(took.tweets.values()) for at, took in note.windows.items()} == {
        5_000: 3
    }


def test_every_arrow_batch_has_a_note_of_its_own(store: Lists) -> None:
    batches = [events(tweet("1")), events(), events(tweet("2"))]

    told = [one.to_pylist() for one in Task(store).run(iter(batches))]

    assert [len(one) for one in told] == [1, 0, 1]
    rows = [row for one in told for place in one for row in place]
    assert [row["key"] for row in rows if row["kind"] == NOTE] == ["0.0", "0.2"]


def test_the_same_events_come_to_the_same(store: Lists) -> None:
    batch = events(tweet("1"), tweet("2", user="b"))

    once, again = (list(Task(store).run(iter([batch])))[0] for _ in range(2))

    assert without_notes(once) == without_notes(again)
    assert store.written[:2] == store.written[2:]


def test_totals_are_written_and_the_rest_is_for_the_driver(store: Lists) -> None:
    batch = totals(
        (USER, "a", 3, 1.5, last(42, '[0.5,"9","name of a"]')),
        (TAG, "sun", 7, 0.0, None),
        (NOTE, "0.0", 3, 0.0, last(40, "{}")),
        (USER, "b", 1, 0.25, last(41, '[0.25,"8",null]')),
    )

    (told,) = Totals(store).run(iter([batch]))

    first, *others = told.to_pylist()
    assert others == [None] * 3
    assert first == [
        {"kind": TAG, "key": "sun", "told": '{"tag":"sun","count":7}'},
        {"kind": NOTE, "key": "0.0", "told": "{}"},
    ]
    a = {
        "id_str": "a",
        "screen_name": "name of a",
        "count": 3,
        "sum": 1.5,
        "avg": 0.5,
        "last_score": 0.5,
        "last_tweet_id": "9",
    }
    ((collection, rows),) = store.written
    assert collection == "users_engagements"
    assert rows["a"] == (42, a)
    assert rows["b"][1]["screen_name"] is None


def test_nothing_is_written_of_nothing(store: Lists) -> None:
    (told,) = Totals(store).run(iter([totals()]))

    assert told.to_pylist() == []
    assert store.opened == 0


def events(*tweets: Json) -> tuple[pa.Array, ...]:
    """Values, offsets from 40 on, and timestamps."""
    offsets = list(range(40, 40 + len(tweets)))
    return (
        pa.array([payload(one) if one else b"{}" for one in tweets], pa.binary()),
        pa.array(offsets, pa.int64()),
        pa.array([5_000_000] * len(tweets), pa.timestamp("us", "UTC")),
    )


def totals(*rows: tuple[Any, ...]) -> tuple[pa.Array, ...]:
    kinds = (pa.string(), pa.string(), pa.int64(), pa.float64())
    columns = [[row[place] for row in rows] for place in range(len(COLUMNS))]
    told = pa.struct(
        [("version", pa.int64()), ("rank", pa.int32()), ("told", pa.string())]
    )
    return tuple(map(pa.array, columns, (*kinds, told)))


def last(version: int, told: str) -> Json:
    return {"version": version, "rank": 0, "told": told}


def without_notes(told: pa.Array) -> list[Json]:
    return [row for row in told.to_pylist()[0] if row["kind"] != NOTE]
