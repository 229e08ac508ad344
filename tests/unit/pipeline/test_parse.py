"""The schema of the firehose; what is made of it is in tests/spark."""

from __future__ import annotations

from penstock.pipeline.parse import DEPTH, MAX_TEXT_BYTES, firehose
from penstock.spark import ddl
from penstock.store.documents import MAX_DOCUMENT_BYTES


def test_a_tweet_holds_some_levels_of_retweets_and_it_is_seen_if_there_are_more() -> (
    None
):
    (message,) = ddl.parse(firehose()).fields

    assert message.name == "message"
    tweet = message.dataType["tweet"].dataType  # type: ignore[index]
    assert {"id_str", "text", "user", "entities"} <= set(tweet.names)
    for _ in range(DEPTH):
        below = tweet["retweeted_status"].dataType
        assert below.names == tweet.names
        tweet = below
    assert tweet["retweeted_status"].dataType.names == ["id_str"]


def test_what_fits_is_within_the_limit_of_documents() -> None:
    # Four times in its document, each byte as one of six.
    assert 4 * 6 * MAX_TEXT_BYTES < MAX_DOCUMENT_BYTES / 2
