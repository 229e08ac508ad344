from __future__ import annotations

import json
from collections import Counter

import pytest

from penstock.tweets.generator import PANIC, Generator, MadeTweet, MessageKind
from penstock.tweets.words import emotion_values

COUNT = 6000


@pytest.fixture(scope="module")
def tweets() -> list[MadeTweet]:
    generator = Generator(1, 1)
    return [generator.tweet(n) for n in range(1, COUNT + 1)]


def test_a_message_is_the_same_every_time() -> None:
    one = Generator(7, 1, panic_rate=0.1, malformed_rate=0.1)
    other = Generator(7, 1, panic_rate=0.1, malformed_rate=0.1)

    batch = one.batch(1, 500)

    assert other.batch(101, 100) == batch[100:200]
    assert [other.data(n) for n in range(500, 0, -1)] == batch[::-1]


@pytest.mark.slow
def test_messages_of_other_seeds_and_streams_are_others() -> None:
    batches = [
        Generator(seed, stream).batch(1, 5) for seed in (1, 2) for stream in (1, 2)
    ]

    assert len({data for batch in batches for data in batch}) == 20


def test_the_data_is_a_tweet_with_its_time() -> None:
    generator = Generator(1, 1)

    message = json.loads(generator.data(10))["message"]

    assert message["unix_timestamp_100us"] == 16330464000200
    tweet = message["tweet"]
    assert tweet["id_str"] == str(tweet["id"]) == generator.tweet(10).id_str
    assert tweet["created_at"] == "Fri Oct 01 00:00:00 +0000 2021"
    assert tweet["user"]["id_str"] == str(tweet["user"]["id"])


def test_data_is_on_one_line() -> None:
    batch = Generator(1, 2, panic_rate=0.2, malformed_rate=0.2).batch(1, 1000)

    assert not [data for data in batch if b"\n" in data or b"\r" in data]


@pytest.mark.slow
def test_ids_are_of_one_tweet_each(tweets: list[MadeTweet]) -> None:
    other = Generator(1, 2)

    ids = [tweet.id for tweet in tweets]

    assert ids == sorted(set(ids))
    assert not set(ids) & {other.tweet(n).id for n in range(1, 100)}


def test_three_in_ten_are_retweets_and_few_of_them_of_retweets(
    tweets: list[MadeTweet],
) -> None:
    repeated = [tweet.retweeted_status for tweet in tweets if tweet.retweeted_status]
    deeper = [tweet.retweeted_status for tweet in repeated if tweet.retweeted_status]

    assert 0.28 < len(repeated) / COUNT < 0.32
    assert 0.003 < len(deeper) / len(repeated) < 0.03
    assert not any(tweet.retweeted_status for tweet in deeper)


def test_what_is_retweeted_was_sent_before(tweets: list[MadeTweet]) -> None:
    sent = {tweet.id: tweet for tweet in tweets}
    for tweet in tweets:
        again = tweet.retweeted_status
        if again is None:
            continue
        assert again.id < tweet.id
        assert tweet.text == f"RT @{again.user.screen_name}: {again.text}"
        if again.id in sent:
            first = sent[again.id]
            assert (again.text, again.user.id) == (first.text, first.user.id)
            assert again.favorite_count >= first.favorite_count


def test_few_are_retweeted_often(tweets: list[MadeTweet]) -> None:
    repeated = Counter(
        tweet.retweeted_status.id for tweet in tweets if tweet.retweeted_status
    )

    (_, most), *_ = repeated.most_common(1)

    assert most > 20
    assert Counter(repeated.values())[1] > 100


def test_few_people_and_tags_come_often(tweets: list[MadeTweet]) -> None:
    people = Counter(tweet.user.id for tweet in tweets)
    tags = Counter(tag.text for tweet in tweets for tag in tweet.entities.hashtags)

    for counts in (people, tags):
        (_, most), *_ = counts.most_common(1)
        assert most > counts.total() / 20
        assert len(counts) > 100


def test_entities_are_where_they_say(tweets: list[MadeTweet]) -> None:
    for tweet in tweets:
        for tag in tweet.entities.hashtags:
            start, end = tag.indices
            assert tweet.text[start:end] == f"#{tag.text}"
        for mention in tweet.entities.user_mentions:
            start, end = mention.indices
            assert tweet.text[start:end] == f"@{mention.screen_name}"


def test_some_tweets_repeat_a_tag_and_some_people_have_no_followers(
    tweets: list[MadeTweet],
) -> None:
    tags = [[tag.text for tag in tweet.entities.hashtags] for tweet in tweets]

    assert any(len(set(one)) < len(one) for one in tags)
    assert any(tweet.user.followers_count == 0 for tweet in tweets)


def test_people_win_followers() -> None:
    generator = Generator(1, 1)
    early: dict[str, int] = {}
    for n in range(1, 500):
        user = generator.tweet(n).user
        early[user.id_str] = user.followers_count

    late = {}
    for n in range(50_000, 50_500):
        user = generator.tweet(n).user
        late[user.id_str] = user.followers_count

    both = early.keys() & late.keys()
    assert any(late[id] > early[id] for id in both)
    assert all(late[id] >= early[id] for id in both)


def test_texts_have_feelings_languages_and_emoji(tweets: list[MadeTweet]) -> None:
    values = emotion_values()
    words = [word.strip(".,?/:;!|") for tweet in tweets for word in tweet.text.split()]

    found = {values[word] for word in words if word in values}

    assert {-3, -2, -1, 1, 2, 3} <= found
    assert any(word not in values and word.lower() in values for word in words)
    assert {tweet.lang for tweet in tweets} >= {"en", "es", "ja", "ru", "ar"}
    assert any("😂" in tweet.text for tweet in tweets)


def test_faults_come_at_their_rates() -> None:
    generator = Generator(1, 1, panic_rate=0.1, malformed_rate=0.2)

    kinds = Counter(generator.kind(n) for n in range(1, COUNT + 1))

    assert 0.09 < kinds[MessageKind.PANIC] / COUNT < 0.11
    malformed = COUNT - kinds[MessageKind.PANIC] - kinds[MessageKind.TWEET]
    assert 0.18 < malformed / COUNT < 0.22
    assert len(kinds) == len(MessageKind)


def test_without_faults_everything_is_a_tweet() -> None:
    generator = Generator(1, 1)

    assert {generator.kind(n) for n in range(1, 1000)} == {MessageKind.TWEET}


@pytest.mark.slow
def test_faults_are_what_they_are_called() -> None:
    generator = Generator(1, 1, panic_rate=0.2, malformed_rate=0.4)
    faultless = Generator(1, 1)
    for n in range(1, 1000):
        data, kind = generator.data(n), generator.kind(n)
        if kind is MessageKind.PANIC:
            assert data == PANIC == b'{"message": panic}'
        elif kind is MessageKind.TRUNCATED:
            whole = faultless.data(n)
            assert 0 < len(data) < len(whole) and whole.startswith(data)
        elif kind is MessageKind.NO_OBJECT:
            assert not isinstance(json.loads(data), dict)
        elif kind is MessageKind.OTHER_OBJECT:
            assert "tweet" not in json.loads(data)["message"]
        else:
            assert "tweet" in json.loads(data)["message"]
