"""A stream with all that goes wrong in it, and with what only looks as if it did."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.log import Columns, Log
from penstock.tweets.generator import PANIC, Generator
from tests.unit.pipeline.tweets import nested, payload, tagged, tweet

RATES = {"panic_rate": 0.02, "malformed_rate": 0.05}
# Every so many messages one of the odd ones, and every so many one comes again.
ODD, REPEATED = 7, 9

ODD_ONES = [
    # Taken, though something is missing or strange.
    payload(tweet("odd 1", text=None, lang=None, created_at=None, entities=None)),
    payload(tweet("odd 2", favorite_count=None, retweet_count=None, user="odd")),
    payload(tweet("odd 3", entities={"hashtags": [{"text": "odd"}, {}, None]})),
    payload(tweet("odd 4", entities={"hashtags": None}, followers=0)),
    payload(tagged("odd 5", "odd", "ödd", "odd", text="😀 not GOOD, but so good!!")),
    payload(tweet("odd 6", text="x" * 200_000, unknown={"to": ["us"] * 1000})),
    payload(tweet("ö" * 512, user="ü" * 512)),
    json.dumps({"message": {"tweet": tweet("odd 7"), "more": 1}, "more": 1}).encode(),
    payload(nested(1)),
    payload(nested(2)),
    # Of himself, and older than what came.
    payload(tweet("odd 8", retweeted_status=tweet("odd 8", text="older", user="odd"))),
    payload(tweet("odd 8", text="newer", user="odd")),
    # Not taken.
    PANIC,
    b"",
    b"{}",
    b"[]",
    b"null",
    b'{"message": null}',
    b'{"message": {"tweet": null}}',
    b'{"message": {"tweet": []}}',
    b'{"message": {"tweet": {"id_str": "1", "user": {"id_str": "\\ud800"}}}}',
    b'{"message": {"tweet": {"text": "\xff"}}}',
    b'{"message": {"tweet": {"favorite_count": NaN}}}',
    b'{"message":' + b'{"tweet":' * 100_000,
    b"[" * 100_000,
    payload(tweet("no 1", favorite_count=1 << 63)),
    payload(tweet("no 2", favorite_count="7")),
    payload(tweet("no 3", favorite_count=1.5)),
    payload(tweet("no 4", text=17)),
    payload({"id_str": "no 5", "text": "nobody's"}),
    payload(nested(3)),
    payload(nested(50)),
    payload(tweet("no 6", retweeted_status={"id_str": "nobody's"})),
    payload(tweet("i" * 1025)),
    payload(tweet("no 7", retweeted_status=tweet("no 8", user="u" * 2000))),
    payload(tweet("no 9", text="x" * (256 << 10))),
    payload(tweet("no 10", retweeted_status=tweet("no 11", lang="x" * (2 << 20)))),
]


def stream(seed: int, count: int) -> list[bytes]:
    """So many messages, odd ones among them, some of them more than once."""
    found: list[bytes] = []
    odd = iter(ODD_ONES)
    for number, data in enumerate(Generator(seed, 1, **RATES).batch(1, count)):
        found.append(data)
        if number % ODD == 0:
            found += [one for _, one in zip(range(1), odd, strict=False)]
        if number % REPEATED == 0:
            found.append(found[len(found) // 2])
    return [*found, *odd]


def store(data: Path, payloads: list[bytes], panics: list[int], begin_ms: int) -> None:
    """Have a broker's data with these, in two pieces of seven seconds, and the panics.

    Of which every second one is of the time in between, when no tweet came.
    """
    middle = len(payloads) // 2
    times = [
        begin_ms + place * 14_000 // len(payloads) + (13_000 if place >= middle else 0)
        for place in range(len(payloads))
    ]
    samples = [json.dumps({"kind": "panics", "count": one}).encode() for one in panics]
    quiet = [begin_ms + (12_500, 3_500)[one % 2] for one in range(len(panics))]
    with Log.open(data) as log:
        for topic, events in (
            ("firehose", Columns(payloads, times)),
            ("pipeline_samples", Columns(samples, quiet)),
        ):
            log.create_topic(topic)
            log.append(topic, events)
        log.commit()
