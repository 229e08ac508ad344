from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.supervisor.part import Places
from penstock.supervisor.plan import (
    Ports,
    Wanted,
    first_parts,
    other_parts,
    ports_of,
    without_secret,
)


def names(wanted: Wanted) -> list[str]:
    places = Places(Path("data"))
    parts = first_parts(wanted, places) + other_parts(
        wanted, places, server="h:1", tweets="http://h:2", store="postgresql://x"
    )
    for part in parts:
        assert set(part.needs) <= {one.name for one in parts}, part
    return [part.name for part in parts]


def test_all_parts_are_there() -> None:
    assert names(Wanted(rate=1, seed=1)) == [
        "broker",
        "source",
        "store",
        "ingest",
        "cdc",
        "spark",
        "subscriber tweets",
        "subscriber users",
        "subscriber users_engagements",
    ]


def test_a_store_of_ones_own_is_not_started() -> None:
    found = names(Wanted(rate=1, seed=1, store="mongodb://x"))

    assert "store" not in found
    assert "cdc" in found


def test_without_spark_the_tweets_themselves_are_read() -> None:
    found = names(Wanted(rate=1, seed=1, spark=False))

    assert found == ["broker", "source", "ingest", "subscriber firehose"]


@pytest.mark.parametrize("count", [None, 7])
def test_the_source_is_told_what_to_send(count: int | None) -> None:
    wanted = Wanted(rate=250.0, seed=3, count=count)
    [_, source, _] = first_parts(wanted, Places(Path("data")))

    rest = source.command[source.command.index("--rate") :]
    more = () if count is None else ("--count", "7")
    assert rest == ("--rate", "250.0", "--seed", "3", *more)


def test_ports_are_those_that_parts_have_found() -> None:
    told: dict[str, Any] = {
        "broker": {"ports": {"line": 1, "native": 2, "control": 3}},
        "source": {"url": "http://127.0.0.1:4"},
        "store": {"port": 5},
    }

    assert ports_of(told, Ports()) == Ports(
        line=1, native=2, control=3, tweets=4, store=5
    )


def test_a_port_that_nobody_has_stays_as_it_was_wanted() -> None:
    told: dict[str, Any] = {
        "broker": {"ports": {"native": 2}},
        "source": {"url": "http://127.0.0.1:4"},
    }

    assert ports_of(told, Ports(control=7)) == Ports(native=2, control=7, tweets=4)


def test_streams_have_names_that_do_not_depend_on_ports() -> None:
    wanted, places = Wanted(rate=1, seed=1), Places(Path("data"))
    [one, other] = [
        next(
            part
            for part in other_parts(
                wanted, places, server="h:1", tweets=tweets, store="postgresql://x"
            )
            if part.name == "ingest"
        ).command
        for tweets in ("http://h:2", "http://h:3")
    ]

    assert one != other
    assert [one[at + 1] for at, word in enumerate(one) if word == "--name"] == [
        "tweets-1",
        "tweets-2",
    ]


@pytest.mark.parametrize(
    ("url", "shown", "secret"),
    [
        ("postgresql://me:p%40ss@h:1/db?x=1", "postgresql://me@h:1/db?x=1", "p@ss"),
        ("postgresql://me@h/db?passfile=/f", "postgresql://me@h/db?passfile=/f", None),
        ("mongodb://me:pw@h/db", "mongodb://me:pw@h/db", None),
    ],
)
def test_passwords_do_not_stand_on_command_lines(
    url: str, shown: str, secret: str | None
) -> None:
    expected = {} if secret is None else {"PGPASSWORD": secret}

    assert without_secret(url) == (shown, expected)
