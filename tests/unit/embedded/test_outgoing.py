from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.embedded.outgoing import Intent, Posting, Stored, by_topic, columns_of
from penstock.embedded.topic import Topic
from penstock.errors import InvalidBatch, InvalidName, UnfitPayload, WriteFailed


def test_an_intent_is_checked_when_it_is_made() -> None:
    assert Intent.of("t", {"a": 1}).payload == b'{"a":1}'
    assert Intent.of(Topic("t", int), 3, id="i").id == "i"
    cases: list[tuple[Any, type[Exception]]] = [
        (lambda: Intent.of("", b"x"), InvalidName),
        (lambda: Intent.of("t", object()), UnfitPayload),
        (lambda: Intent.of("t", b"x", id=" "), InvalidBatch),
        (lambda: Intent.of("t", b"x", parent=""), InvalidBatch),
        (lambda: Intent.of("t", b"x", dedup_id=""), InvalidBatch),
    ]
    for make, error in cases:
        with pytest.raises(error):
            make()


def test_headers_are_copied() -> None:
    headers = {"a": "b"}
    intent = Intent.of("t", b"x", headers=headers)

    headers["a"] = "c"

    assert intent.headers == {"a": "b"}


def test_columns_that_all_leave_out_stay_out() -> None:
    columns = columns_of([Intent.of("t", b"x"), Intent.of("t", b"y")], 5, None)

    assert columns.payloads == [b"x", b"y"]
    assert (columns.ids, columns.keys, columns.priorities) == (None, None, None)
    assert (columns.headers, columns.parents, columns.producers) == (None, None, None)


def test_a_column_that_one_has_is_there_for_all() -> None:
    intents = [
        Intent.of("t", b"x", key=b""),
        Intent.of("t", b"y", priority=1, headers={"a": "b"}, parent="p", id="i"),
    ]

    columns = columns_of(intents, 5, "me")

    assert columns.keys == [b"", None]
    assert columns.priorities == [0, 1]
    assert columns.headers == [{}, {"a": "b"}]
    assert (columns.ids, columns.parents) == ([None, "i"], [None, "p"])
    assert columns.producers == ["me", "me"]


def test_intents_are_sorted_by_topic_in_their_order() -> None:
    intents = [Intent.of(name, b"%d" % n) for n, name in enumerate("abab")]

    found = by_topic(intents)

    assert {name: [one.payload for one in some] for name, some in found.items()} == {
        "a": [b"0", b"2"],
        "b": [b"1", b"3"],
    }


def test_everybody_who_waits_is_told_of_their_own_event() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        posting = Posting("t")
        indexes = [posting.add(Intent("t", b"x", id=id_)) for id_ in (None, "b", None)]
        waiters = [posting.wait(loop) for _ in indexes]
        posting.errors[2] = InvalidBatch("key", "x", "y")
        waiters[1].cancel()

        posting.placed([4, 5, -1], None)
        posting.stored(lambda topic, offset: f"{topic}-{offset}")

        await waiters[0]
        assert posting.result(0) == Stored("t", 4, "t-4")
        assert posting.result(1) == Stored("t", 5, "b")
        with pytest.raises(InvalidBatch):
            posting.result(2)
        assert not posting.refused

    asyncio.run(run())


def test_a_lost_posting_is_an_error_for_everybody() -> None:
    async def run() -> None:
        posting = Posting("t")
        posting.add(Intent("t", b"x"))
        waiters = [posting.wait(asyncio.get_running_loop()) for _ in range(3)]
        waiters[0].cancel()

        posting.lost(WriteFailed("the journal", "writing", "full"))

        for waiter in waiters[1:]:
            with pytest.raises(WriteFailed):
                await waiter

    asyncio.run(run())


def test_a_posting_is_refused_if_all_of_it_is() -> None:
    posting = Posting("t")
    for index in range(2):
        posting.add(Intent("t", b"x"))
        assert not posting.refused
        posting.errors[index] = InvalidBatch("key", "x", "y")

    assert posting.refused
