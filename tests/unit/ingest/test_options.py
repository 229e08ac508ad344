from __future__ import annotations

import pytest

from penstock.errors import InvalidName, InvalidOption
from penstock.ingest.options import Address, SseOptions, addresses

URL = "http://127.0.0.1:4000/tweets/1"


def test_a_place_is_remembered_by_topic_and_url() -> None:
    found = addresses([URL, "https://me:secret@h/e?x=1"], [], "t")

    assert [one.feed for one in found] == [
        "ingest:t:127.0.0.1:4000/tweets/1",
        "ingest:t:h/e?x=1",
    ]


def test_a_place_is_remembered_by_a_name() -> None:
    assert addresses([URL], ["one"], "t") == [Address(URL, "ingest:one")]


def test_user_and_password_are_not_shown() -> None:
    assert Address("https://me:secret@h:1/e?x=1", "f").shown == "https://h:1/e?x=1"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:12/secret@h:1/e", "http://…@h:1/e"),
        ("http://me:sec@ret@h/e", "http://h/e"),
        ("http://h/users/@me/e", "http://h/users/@me/e"),
    ],
)
def test_what_may_be_a_password_is_not_shown(url: str, shown: str) -> None:
    assert Address(url, "f").shown == shown


@pytest.mark.parametrize(
    ("urls", "names", "text"),
    [
        (["ftp://h/x"], [], "option URL is 'ftp://h/x': must be http://… or https://…"),
        (["ftp://u:pw@h/x"], [], "option URL is 'ftp://h/x': must be"),
        (["u:p/w@h/x"], [], "option URL is 'h/x': must be"),
        (["http://u:pw@[h/x"], [], "option URL is 'http://[h/x': must be"),
        (["h/x"], [], "must be http://… or https://…"),
        (["http://u:p/w@h/x"], [], "option URL is 'http://h/x': must be"),
        (["http:///x"], [], "must be http://… or https://…"),
        ([URL], ["a", "b"], "option name is 'a, b': must be given once for each URL"),
        ([URL, URL + "x"], ["a", "a"], "must be different for each stream"),
        ([URL, URL], [], "must be different for each stream"),
    ],
)
def test_what_makes_no_sense_is_refused(
    urls: list[str], names: list[str], text: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        addresses(urls, names, "t")

    assert text in str(caught.value)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"topic": ""}, {"topic": "t", "samples": "x" * 2000}]
)
def test_what_can_be_no_topic_is_refused_at_once(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidName):
        SseOptions(**wrong)  # type: ignore[arg-type]


def test_tweets_need_no_options() -> None:
    options = SseOptions(topic="firehose")

    assert options.key == "message.tweet.id_str"
    assert options.panic == '{"message": panic}'
