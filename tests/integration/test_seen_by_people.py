"""Changes of the pipeline's collections as people with telnet see them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from penstock.cdc.change import NOTHING, Change, ChangePayload, ChangeSource, Op
from penstock.cdc.run import Pump
from penstock.cli.cdc import shown_of
from penstock.client import connect
from penstock.client.feed import Feed
from penstock.pipeline.documents import tweet_document, user_document
from penstock.pipeline.portion import engagement
from penstock.pipeline.tweet import read
from penstock.supervisor.plan import COLLECTIONS, MESSAGES, PRIORITY
from penstock.tweets.generator import Generator
from tests.serving import Serving, serving
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

FLAGS = ("--no-json", "--no-maze", "--no-mqtt", "--no-http", "--control-port", "0")
SHOWN = shown_of(
    COLLECTIONS, [f"{name}={field}" for name, field in MESSAGES.items()], [PRIORITY]
)
TWEETS = 40


class Listed:
    """A capture of changes that are known beforehand."""

    lag: int | None = 0

    def __init__(self, changes: list[Change]) -> None:
        self._changes = changes

    def forget(self) -> None: ...

    def begin(self, place: str) -> None: ...

    def take(self, most: int, wait_s: float) -> list[Change]:
        found, self._changes = self._changes[:most], self._changes[most:]
        return found

    def place(self) -> str:
        return str(len(self._changes))

    def stored(self) -> None: ...

    def close(self) -> None: ...


def change(op: Op, collection: str, key: str, before: Any, after: Any) -> Change:
    source = ChangeSource("postgresql", "db", collection, f"0/1#{key}", 5)
    return Change(
        f"{collection}-{op}-{key}", ChangePayload(op, key, before, after, source)
    )


def changes() -> list[Change]:
    made = Generator(1, 1)
    tweets = [read(made.data(n)).tweets[0] for n in range(1, TWEETS + 1)]
    found = []
    for n, tweet in enumerate(tweets):
        document = msgspec.Raw(
            tweet_document(tweet, engagement(tweet), 1, is_retweet=False)
        )
        user = msgspec.Raw(user_document(tweet))
        found.append(change("insert", "tweets", str(n), NOTHING, document))
        found.append(change("insert", "users", str(n), NOTHING, user))
    found.append(change("delete", "users", "0", found[1].body.after, NOTHING))
    found.append(change("delete", "users", "1", NOTHING, NOTHING))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("seen"), *FLAGS) as server:
        with connect(server.data) as client:
            for topic in COLLECTIONS:
                client.ask("topics.create", name=topic)
        yield server


def captured(server: Serving, name: str) -> list[Change]:
    """Publish changes as ``penstock up`` has them published."""
    listed = changes()
    with Feed(server.data, f"cdc:{name}", gateway="cdc") as feed:
        pump = Pump(Listed(listed), feed, shown=SHOWN)
        pump.begin()
        assert pump.step() == len(listed)
    return listed


def reader(server: Serving, topic: str) -> Wire:
    wire = Wire(server.ports["line"])
    wire.line()
    assert wire.ask(f"sub {topic}").startswith("successfully subscribed")
    return wire


def acknowledged(wire: Wire, topic: str) -> list[dict[str, Any]]:
    """All events, each acknowledged before the next one comes."""
    found = []
    line = wire.line()
    while line != "no available message":
        found.append(json.loads(line))
        wire.say(f"ack {topic} {found[-1]['id']}")
        assert wire.line() == "acknowledged from current session"
        line = wire.line()
    return found


def test_tweets_are_shown_by_their_text_the_most_engaging_first(
    server: Serving,
) -> None:
    with reader(server, "tweets") as wire:
        captured(server, "texts")
        found = acknowledged(wire, "tweets")

    fields = [
        "topic",
        "priority",
        "msg",
        "id",
        "op",
        "key",
        "before",
        "after",
        "source",
    ]
    assert [list(one) for one in found] == [fields] * TWEETS
    assert all(one["msg"] == one["after"]["text"] for one in found)
    assert all(one["source"]["collection"] == "tweets" for one in found)
    # One was on its way before there was another to choose from; all came at once.
    levels = [one["priority"] for one in found]
    assert levels == sorted(levels, reverse=True)
    assert max(levels) >= 4
    assert [one["priority"] for one in found] == [
        _level(one["after"]["engagement_score"]) for one in found
    ]


def test_users_are_shown_by_their_names_and_also_when_they_are_gone(
    server: Serving,
) -> None:
    with reader(server, "users") as wire:
        captured(server, "names")
        found = acknowledged(wire, "users")

    assert {one["priority"] for one in found} == {0}
    *users, gone, unknown = found
    assert [one["msg"] for one in users] == [
        one["after"]["screen_name"] for one in users
    ]
    assert (gone["op"], gone["after"]) == ("delete", None)
    assert gone["msg"] == gone["before"]["screen_name"] == users[0]["msg"]
    assert (unknown["op"], unknown["msg"], unknown["before"]) == ("delete", None, None)


def test_everybody_gets_the_same_payload(server: Serving) -> None:
    captured(server, "payloads")
    with connect(server.data) as client:
        (first, *_) = client.fetch("users", 0, 1).batches[0].payloads()
    payload = json.loads(first)

    assert list(payload) == ["msg", "op", "key", "before", "after", "source"]
    assert payload["msg"] == payload["after"]["screen_name"]


def test_the_control_port_shows_texts(server: Serving) -> None:
    with Wire(server.ports["control"]) as wire:
        wire.line()
        wire.say("twitter")
        assert wire.line() == "[Command] run :twitter"
        assert wire.line() == (
            "[Command] missing: a pipeline, penstock up runs one; "
            "shown is what others publish to tweets"
        )
        listed = captured(server, "control")

        shown = wire.lines(TWEETS)

    texts = [
        json.loads(bytes(one.body.after))["text"]
        for one in listed
        if one.collection == "tweets"
    ]
    heads = {line.rpartition("tweet: ")[2].partition(" ")[0] for line in shown}
    assert len(heads) == 1
    assert [_letters(line.partition("-")[2].partition(" ")[2]) for line in shown] == [
        _letters(text) for text in texts
    ]


def test_made_up_tweets_have_every_priority() -> None:
    made = Generator(7, 2)
    scores = [_score(made.tweet(n)) for n in range(1, 2001)]

    found = Counter(map(_level, scores))

    assert sorted(found) == [0, 1, 2, 3, 4, 5, 6]
    assert min(found.values()) > 40


def _letters(text: str) -> str:
    """What a terminal shows of it, whatever the blanks are."""
    return "".join(sign for sign in text if sign.isprintable() and sign != " ")


def _score(tweet: Any) -> float:
    likes = tweet.favorite_count + tweet.retweet_count
    return float(likes / (tweet.user.followers_count or 1))


def _level(score: float) -> int:
    return sum(score >= threshold for threshold in (0.01, 0.03, 0.1, 0.3, 1, 3))
