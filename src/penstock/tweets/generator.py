"""Message ``n`` of a stream, always the same for the same seed.

Everything about a message is read from a hash of its number, so any message can be
made without those before it: a client goes on where it was although the server was
restarted, and a test knows what a stream holds without reading it.

Three tweets in ten are retweets. What they repeat is drawn from the 2 048 messages in
front of the running 2 048, the popular ones much more often; in front of message 1
there are tweets that only retweets show. What is retweeted is as it was when it was
sent, except for counts, which grow. One in a hundred retweets repeats a retweet.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Final

import msgspec

from penstock.tweets.phrases import EMOJI, NOUNS
from penstock.tweets.pools import DRAWS, Pools, zipf


class MadeUser(msgspec.Struct, gc=False):
    id: int
    id_str: str
    name: str
    screen_name: str
    location: str | None
    verified: bool
    followers_count: int
    friends_count: int
    statuses_count: int
    created_at: str
    lang: str


class MadeHashtag(msgspec.Struct, gc=False):
    text: str
    indices: tuple[int, int]
    """In characters: from "#" to behind the last."""


class Mention(msgspec.Struct, gc=False):
    screen_name: str
    name: str
    id: int
    id_str: str
    indices: tuple[int, int]


class MadeEntities(msgspec.Struct, gc=False):
    hashtags: list[MadeHashtag]
    user_mentions: list[Mention]
    urls: list[str] = []
    symbols: list[str] = []


class MadeTweet(msgspec.Struct, gc=False, omit_defaults=True, kw_only=True):
    created_at: str
    id: int
    id_str: str
    text: str
    source: str
    user: MadeUser
    entities: MadeEntities
    favorite_count: int
    retweet_count: int
    lang: str
    retweeted_status: MadeTweet | None = None


class MadeInner(msgspec.Struct, gc=False):
    tweet: MadeTweet
    unix_timestamp_100us: int


class MadeMessage(msgspec.Struct, gc=False):
    """What the data of a server-sent event hold."""

    message: MadeInner


# The text that is no JSON, to the letter as the original server sends it.
PANIC: Final = b'{"message": panic}'

RETWEETS: Final = 0.3
_DEEP = 0.003
# How far back retweets go.
_BLOCK = 2048
# Message 0 is of this second, and two milliseconds are between messages.
_BEGIN_MS = 1_633_046_400_000
_STEP_MS = 2
_TWITTER_EPOCH_MS = 1_288_834_974_657
_SOURCES = ("Twitter for Android", "Twitter for iPhone", "Twitter Web App")

_draws_of = Struct("<32H").unpack
_number = Struct("<q").pack
_encode = msgspec.json.Encoder().encode
_rank_of = zipf(_BLOCK, 1.0)
# Draw -> how often something is liked: half are 0 or 1, few are large.
_COUNTS = array("H", [int(2.0 ** (draw / DRAWS * 11) / 45) for draw in range(DRAWS)])

Draws = Sequence[int]


class MessageKind(StrEnum):
    """What a message is."""

    TWEET = "tweet"
    PANIC = "panic"
    TRUNCATED = "truncated"
    NO_OBJECT = "no object"
    """JSON, but no object."""
    OTHER_OBJECT = "other object"
    """A JSON object without a tweet, as Twitter's own streams have them."""


class Generator:
    """The messages of one stream, from number 1 on."""

    def __init__(
        self,
        seed: int,
        stream: int,
        *,
        panic_rate: float = 0.0,
        malformed_rate: float = 0.0,
    ) -> None:
        self._stream = stream
        self._key = f"{seed} {stream}".encode()
        self._pools = Pools.of(seed)
        self._panics = panic_rate * DRAWS * DRAWS
        self._faults = (panic_rate + malformed_rate) * DRAWS * DRAWS

    def batch(self, first: int, count: int) -> list[bytes]:
        """The data of so many messages."""
        return [self.data(number) for number in range(first, first + count)]

    def data(self, n: int) -> bytes:
        """The data of message ``n``, on one line."""
        draws = self._draws(n)
        if draws[0] * DRAWS + draws[1] < self._faults:
            return self._fault(n, draws)
        return self._whole(n, draws)

    def kind(self, n: int) -> MessageKind:
        draws = self._draws(n)
        fault = draws[0] * DRAWS + draws[1]
        if fault >= self._faults:
            return MessageKind.TWEET
        if fault < self._panics:
            return MessageKind.PANIC
        kinds = (
            MessageKind.TRUNCATED,
            MessageKind.TRUNCATED,
            MessageKind.NO_OBJECT,
            MessageKind.OTHER_OBJECT,
        )
        return kinds[draws[2] % 4]

    def tweet(self, n: int) -> MadeTweet:
        """The tweet of message ``n``, or what would be there but for a fault."""
        return self._tweet(n, n, self._draws(n))

    def _draws(self, n: int) -> Draws:
        """32 numbers below DRAWS; the places of their uses are fixed."""
        return _draws_of(blake2b(_number(n), key=self._key).digest())

    def _whole(self, n: int, draws: Draws) -> bytes:
        tweet = self._tweet(n, n, draws)
        return _encode(MadeMessage(MadeInner(tweet, _time_ms(n) * 10)))

    def _fault(self, n: int, draws: Draws) -> bytes:
        match self.kind(n):
            case MessageKind.PANIC:
                return PANIC
            case MessageKind.TRUNCATED:
                whole = self._whole(n, draws)
                return whole[: draws[3] % (len(whole) - 1) + 1]
            case MessageKind.NO_OBJECT:
                return (b"null", b'"panic"', b"[]", b"%d" % n)[draws[3] % 4]
            case _:
                id = str(_id(n - 1, self._stream))
                return _encode({"message": {"delete": {"status": {"id_str": id}}}})

    def _tweet(self, n: int, at: int, draws: Draws) -> MadeTweet:
        """Tweet ``n`` as it is when message ``at`` is sent."""
        repeated = self._repeated(n, at, draws)
        if repeated is None:
            text, lang, entities = self._say(draws)
        else:
            text, lang, entities = _repeat(repeated)
        id = _id(n, self._stream)
        return MadeTweet(
            created_at=_created_at(_time_ms(n) // 1000),
            id=id,
            id_str=str(id),
            text=text,
            source=_SOURCES[draws[20] % 3],
            user=self._user(draws[3], at),
            entities=entities,
            favorite_count=_COUNTS[draws[21]] + (at - n) // 8,
            retweet_count=_COUNTS[draws[22]] + (at - n) // 16,
            lang=lang,
            retweeted_status=repeated,
        )

    def _repeated(self, n: int, at: int, draws: Draws) -> MadeTweet | None:
        draw = draws[4] / DRAWS
        if draw >= RETWEETS:
            return None
        wanted = _is_plain if draw >= _DEEP else _is_retweet
        base = (n // _BLOCK - 1) * _BLOCK
        place = _rank_of[draws[5]] * 1021 + n // _BLOCK
        while not wanted(found := self._draws(base + place % _BLOCK)):
            place += 1
        return self._tweet(base + place % _BLOCK, at, found)

    def _user(self, draw: int, at: int) -> MadeUser:
        pools = self._pools
        person = pools.people[pools.person_of[draw]]
        return MadeUser(
            id=person.id,
            id_str=str(person.id),
            name=person.name,
            screen_name=person.screen_name,
            location=person.location,
            verified=person.verified,
            followers_count=person.followers + person.growth * at // 1000,
            friends_count=person.friends,
            statuses_count=person.friends * 3 + at // 100,
            created_at=person.created_at,
            lang=person.lang,
        )

    def _say(self, draws: Draws) -> tuple[str, str, MadeEntities]:
        pools = self._pools
        lang, text = pools.phrase_of[draws[6] % 256]
        text = text.replace("{n}", NOUNS[draws[7] % len(NOUNS)])
        for draw in draws[8:11]:
            if "{w}" not in text:
                break
            case, word = divmod(draw, len(pools.words))
            text = text.replace("{w}", _cased(pools.words[word], case), 1)
        if draws[11] < DRAWS // 4:
            text = f"{text} {EMOJI[draws[11] % len(EMOJI)]}"
        hashtags = []
        # Three eighths have none, one eighth has three.
        for draw in draws[13 : 13 + (draws[12] & 7) * 3 // 7]:
            tag = pools.tags[pools.tag_of[draw]]
            start = len(text) + 1
            text = f"{text} #{tag}"
            hashtags.append(MadeHashtag(tag, (start, len(text))))
        return text, lang, MadeEntities(hashtags, [])


def _repeat(repeated: MadeTweet) -> tuple[str, str, MadeEntities]:
    """Text and entities of a retweet, as Twitter makes them."""
    user = repeated.user
    head = f"RT @{user.screen_name}: "
    mention = Mention(
        user.screen_name, user.name, user.id, user.id_str, (3, len(head) - 2)
    )
    hashtags = [
        MadeHashtag(tag.text, (tag.indices[0] + len(head), tag.indices[1] + len(head)))
        for tag in repeated.entities.hashtags
    ]
    others = [
        msgspec.structs.replace(
            one, indices=(one.indices[0] + len(head), one.indices[1] + len(head))
        )
        for one in repeated.entities.user_mentions
    ]
    entities = MadeEntities(hashtags, [mention, *others])
    return head + repeated.text, repeated.lang, entities


def _is_plain(draws: Draws) -> bool:
    return draws[4] / DRAWS >= RETWEETS


def _is_retweet(draws: Draws) -> bool:
    """Of a tweet that is none itself."""
    return _DEEP <= draws[4] / DRAWS < RETWEETS


def _cased(word: str, case: int) -> str:
    """One word in twelve is shouted, one in six begins with a capital letter."""
    if case < 2:
        return word.upper()
    return word.capitalize() if case < 6 else word


def _time_ms(n: int) -> int:
    return _BEGIN_MS + n * _STEP_MS


def _id(n: int, stream: int) -> int:
    return (_time_ms(n) - _TWITTER_EPOCH_MS) << 22 | stream


@lru_cache(1024)
def _created_at(second: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S +0000 %Y", time.gmtime(second))
