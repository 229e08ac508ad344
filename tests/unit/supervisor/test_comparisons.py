from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from penstock.supervisor.comparisons import (
    Comparison,
    StoredDocuments,
    accounts,
    behind,
    idle,
    sent,
)
from penstock.supervisor.figures import Counted, StageCounts
from penstock.supervisor.process import PartState
from penstock.supervisor.sums import Sums

STATUSES: dict[str, dict[str, Any]] = {
    "ingest": {
        "events": 100,
        "panics": 3,
        "malformed": 2,
        "sources": {"a": "60", "b": "40"},
    },
    "cdc": {"inserts": {"tweets": 110, "users": 20, "users_engagements": 20}},
}
COUNTED = Counted(
    {"firehose": 95, "tweets": 130},
    {
        ("up-tweets", "tweets"): (130, 0),
        ("other", "tweets"): (0, 130),
        ("spark:pipeline-firehose", "firehose"): (95, 0),
    },
)
SENT = {"1": 60, "2": 40}
STORED = StoredDocuments({}, {"tweets": 110, "users": 20, "users_engagements": 20}, 120)


def sums(**told: int) -> Sums:
    found = Sums()
    found.reported = Counter(
        {"tweets_stats": 120, "users_stats": 120, "logger_stats": 3, **told}
    )
    return found


def wrong(
    counted: Counted = COUNTED,
    stored: StoredDocuments = STORED,
    letters: int = 5,
    sent: dict[str, int] = SENT,
    **changed: dict[str, Any],
) -> list[str]:
    statuses = {name: {**STATUSES[name], **changed.get(name, {})} for name in STATUSES}
    found = accounts(statuses, counted, sums(), stored, letters=letters, sent=sent)
    return names_of_wrong(found)


def names_of_wrong(found: list[Comparison]) -> list[str]:
    return [one.what for one in found if not one.right]


def row(name: str, **values: Any) -> StageCounts:
    return StageCounts(name=name, state=PartState.READY, **values)


def test_books_that_agree_are_right() -> None:
    assert wrong() == []


def test_a_message_that_did_not_arrive_is_noticed() -> None:
    assert wrong(sent={"1": 61, "2": 40}) == ["messages received of those sent"]


def test_the_source_knows_what_it_has_sent() -> None:
    source = {"sent": {"1": 70, "2": 40}}
    ingest = {"sources": {"http://h:1/tweets/1": "60", "http://h:1/tweets/2": "41"}}

    assert sent(source, ingest) == {"1": 70, "2": 41}
    assert sent({}, {"sources": {"http://h/tweets/2": ""}}) == {}


def test_a_tweet_that_is_not_in_the_topic_is_noticed() -> None:
    assert "tweets in firehose" in wrong(letters=4, ingest={"panics": 2})


def test_a_letter_that_is_missing_is_noticed() -> None:
    assert wrong(letters=4) == ["dead letters of panics and of what makes no sense"]


def test_a_change_that_was_not_captured_is_noticed() -> None:
    inserts = {"tweets": 109, "users": 20, "users_engagements": 20}
    assert wrong(cdc={"inserts": inserts}) == ["changes captured of new tweets"]


def test_documents_from_before_the_first_run_were_not_captured() -> None:
    now = {"tweets": 117, "users": 20, "users_engagements": 20}

    assert wrong(stored=StoredDocuments({"tweets": 7}, now, 120)) == []
    assert wrong(stored=StoredDocuments({}, now, 120)) == [
        "changes captured of new tweets"
    ]


def test_tweets_that_spark_has_not_seen_are_noticed() -> None:
    places = {**COUNTED.places, ("spark:pipeline-firehose", "firehose"): (94, 1)}

    assert wrong(Counted(COUNTED.topics, places)) == ["tweets processed"]


@pytest.mark.parametrize(
    ("topic", "what"),
    [("tweets_stats", "tweets"), ("users_stats", "users"), ("logger_stats", "panics")],
)
def test_a_window_that_was_not_told_is_noticed(topic: str, what: str) -> None:
    found = accounts(
        *(STATUSES, COUNTED, sums(**{topic: 2}), STORED), letters=5, sent=SENT
    )

    assert names_of_wrong(found) == [f"{what} told by statistics"]


def test_panics_behind_the_last_window_are_not_missed() -> None:
    waiting = sums(logger_stats=2)
    waiting.waiting = 1

    found = accounts(STATUSES, COUNTED, waiting, STORED, letters=5, sent=SENT)

    assert names_of_wrong(found) == []


def test_without_a_store_there_is_nothing_to_compare_with_it() -> None:
    counted = Counted({"firehose": 95}, {("up-firehose", "firehose"): (90, 5)})

    found = accounts(STATUSES, counted, Sums(), None, letters=5, sent=SENT)

    assert names_of_wrong(found) == ["events of firehose acknowledged"]
    assert all("captured" not in one.what for one in found)


def test_parts_that_said_nothing_are_wrong_not_an_error() -> None:
    found = accounts(
        *({}, Counted({"firehose": 1}, {}), Sums(), STORED), letters=0, sent={}
    )

    assert any(not one.right for one in found)


def test_statistics_of_which_some_are_gone_are_not_compared() -> None:
    part = sums(tweets_stats=2)
    part.is_whole = False

    found = accounts(STATUSES, COUNTED, part, STORED, letters=5, sent=SENT)

    assert names_of_wrong(found) == []
    assert all("statistics" not in one.what for one in found)


def test_lines_say_how_far_it_is_off() -> None:
    assert Comparison("tweets", 1000, 1000).line() == "ok    tweets: 1 000"
    assert Comparison("tweets", 1000, 998).line() == (
        "WRONG tweets: 998 instead of 1 000 (-2)"
    )


def test_who_did_nothing_and_who_is_behind() -> None:
    rows = [
        row("source", events=0),
        row("store"),
        row("ingest", events=5, new=5, lag=2),
        row("subscriber tweets", events=1, new=1, lag=None),
        row("subscriber users", events=1, new=1, lag=0),
        row("cdc", events=3, new=0, lag=None),
        row("spark", events=3, new=3, lag=0),
        StageCounts(name="broker", state=PartState.PAUSED, events=3, new=3),
    ]

    assert idle(rows) == ["source", "cdc"]
    assert idle(rows, ever=True) == ["source"]
    assert behind(rows) == ["ingest", "subscriber tweets", "cdc", "broker"]
