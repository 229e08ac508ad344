"""What one Arrow batch of the firehose comes to, before anything is written.

Events are in the order of their offsets. The tweet that came is newer than those inside
of it, so of equal ids, and of equal users, the last one that is looked at counts: only
that is scored and written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from penstock.pipeline.documents import tweet_document, user_document
from penstock.pipeline.tweet import TakenEvent, Tweet, Unfit, read
from penstock.store.store import DocumentRow


def engagement(tweet: Tweet) -> float:
    """(favorite_count + retweet_count) / followers_count, by 1 for who has none.

    Counts that are missing are 0.
    """
    likes = float(tweet.favorite_count or 0) + float(tweet.retweet_count or 0)
    return likes / (tweet.author.followers_count or 1)


class Stray(msgspec.Struct, frozen=True, array_like=True):
    """An event that is not taken, and why; ``raw`` is None where it would be much."""

    offset: int
    reason: str
    raw: bytes | None = None


class FoundTweet(msgspec.Struct, frozen=True, gc=False):
    """A tweet, and where it was."""

    tweet: Tweet
    version: int
    """The offset of its event."""
    position: int
    """The depth at which it was found: 0 is the one that came."""
    at_ms: int | None
    engagement: float

    def document(self) -> DocumentRow:
        doc = tweet_document(
            self.tweet, self.engagement, self.at_ms, is_retweet=self.position > 0
        )
        return self.tweet.key, self.version, doc

    def user(self) -> DocumentRow:
        return self.tweet.author.id_str or "", self.version, user_document(self.tweet)


class Engaged(msgspec.Struct, gc=False):
    """Engagement of one user, as far as a portion knows it."""

    last: FoundTweet
    count: int = 0
    sum: float = 0.0

    def add(self, found: FoundTweet) -> None:
        self.last = found
        self.count += 1
        self.sum += found.engagement


@dataclass(slots=True)
class TweetPortion:
    """Tweets and users by id, the newest of each; sums; and what is not taken."""

    tweets: dict[str, FoundTweet] = field(default_factory=dict)
    users: dict[str, Engaged] = field(default_factory=dict)
    tags: Counter[str] = field(default_factory=Counter)
    """How often each was used: in tweets that came, as often as it stands there."""
    times: Counter[int] = field(default_factory=Counter)
    """How many tweets the broker got when, in milliseconds."""
    strays: list[Stray] = field(default_factory=list)

    def add(self, taken: TakenEvent, offset: int, stored_ms: int) -> None:
        """Add what an event holds."""
        tweets, at_ms = taken.tweets, taken.at_ms
        self.times[stored_ms] += len(tweets)
        for tag in tweets[0].hashtags or ():
            if tag is not None:
                self.tags[tag] += 1
        for position in range(len(tweets) - 1, -1, -1):
            tweet = tweets[position]
            found = FoundTweet(tweet, offset, position, at_ms, engagement(tweet))
            self.tweets[tweet.key] = found
            self._engage(tweet.author.id_str or "", found)

    def _engage(self, user: str, found: FoundTweet) -> None:
        engaged = self.users.get(user)
        if engaged is None:
            engaged = self.users[user] = Engaged(found)
        engaged.add(found)

    def documents(self) -> Iterator[DocumentRow]:
        return (found.document() for found in self.tweets.values())

    def authors(self) -> Iterator[DocumentRow]:
        return (engaged.last.user() for engaged in self.users.values())


def portion(events: Iterable[tuple[int, int, bytes]]) -> TweetPortion:
    """What events come to: offset, when the broker stored it, and payload of each."""
    found = TweetPortion()
    for offset, stored_ms, payload in events:
        try:
            found.add(read(payload), offset, stored_ms)
        except Unfit as error:
            found.strays.append(Stray(offset, str(error), payload))
    return found
