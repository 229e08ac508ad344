from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.supervisor.part import Part, Places
from penstock.supervisor.plan import (
    PRIORITY,
    PipelinePorts,
    PipelineRequest,
    first_parts,
    other_parts,
    ports_of,
)


def names(wanted: PipelineRequest) -> list[str]:
    places = Places(Path("data"))
    parts = first_parts(wanted, places) + other_parts(
        wanted, places, server="h:1", tweets="http://h:2", store="postgresql://x"
    )
    for part in parts:
        assert set(part.needs) <= {one.name for one in parts}, part
    return [part.name for part in parts]


def test_all_parts_are_there() -> None:
    assert names(PipelineRequest(rate=1, seed=1)) == [
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
    found = names(PipelineRequest(rate=1, seed=1, store="mongodb://x"))

    assert "store" not in found
    assert "cdc" in found


def test_without_spark_the_tweets_themselves_are_read() -> None:
    found = names(PipelineRequest(rate=1, seed=1, spark=False))

    assert found == ["broker", "source", "ingest", "subscriber firehose"]


@pytest.mark.parametrize("count", [None, 7])
def test_the_source_is_told_what_to_send(count: int | None) -> None:
    wanted = PipelineRequest(rate=250.0, seed=3, count=count)
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

    assert ports_of(told, PipelinePorts()) == PipelinePorts(
        line=1, native=2, control=3, tweets=4, store=5
    )


def test_a_port_that_nobody_has_stays_as_it_was_wanted() -> None:
    told: dict[str, Any] = {
        "broker": {"ports": {"native": 2}},
        "source": {"url": "http://127.0.0.1:4"},
    }

    assert ports_of(told, PipelinePorts(control=7)) == PipelinePorts(
        native=2, control=7, tweets=4
    )


def test_streams_have_names_that_do_not_depend_on_ports() -> None:
    wanted, places = PipelineRequest(rate=1, seed=1), Places(Path("data"))
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
    "url", ["postgresql://me:p%40ss@h:1/db", "mongodb://me:p%40ss@h/db"]
)
def test_passwords_do_not_stand_on_command_lines(url: str) -> None:
    parts = others(PipelineRequest(rate=1, seed=1, store=url), store=url)

    assert all("p%40ss" not in " ".join(part.command) for part in parts.values())
    assert {
        name for name, part in parts.items() if url in part.environment.values()
    } == {"cdc", "spark"}


def test_changes_are_shown_by_texts_and_names() -> None:
    command = others(PipelineRequest(rate=1, seed=1))["cdc"].command

    messages = [one for one in command if one.startswith("--message=")]
    assert messages == [
        "--message=tweets=text",
        "--message=users=screen_name",
        "--message=users_engagements=screen_name",
    ]
    assert command[command.index("--priority") + 1] == PRIORITY


def test_a_stream_that_rests_is_not_read_until_somebody_asks() -> None:
    resting = others(PipelineRequest(rate=1, seed=1, resting=True))

    assert [name for name, part in resting.items() if part.rests] == ["ingest"]
    assert not any(
        part.rests for part in others(PipelineRequest(rate=1, seed=1)).values()
    )


def test_spark_is_told_its_master_and_settings() -> None:
    wanted = PipelineRequest(
        rate=1,
        seed=1,
        master="spark://h:7077",
        conf=(("spark.a", "-Db=c -Dd"), ("spark.e", "")),
    )

    spark = others(wanted)["spark"]

    at = spark.command.index("--master")
    assert spark.command[at + 1] == "spark://h:7077"
    assert spark.command[-2:] == ("--conf=spark.a=-Db=c -Dd", "--conf=spark.e=")


def test_tweets_come_when_spark_is_there() -> None:
    assert others(PipelineRequest(rate=1, seed=1))["ingest"].after == ("spark",)
    assert others(PipelineRequest(rate=1, seed=1, spark=False))["ingest"].after == ()


def test_parts_trust_a_broker_that_speaks_tls_as_they_are_told() -> None:
    wanted = PipelineRequest(rate=1, seed=1, ca_file="ca.pem")

    secure = others(wanted, server="penstock+tls://h:1")["ingest"].command
    plain = others(wanted)["ingest"].command

    assert secure[secure.index("--ca-file") + 1] == "ca.pem"
    assert "--ca-file" not in plain


def test_subscribers_may_take_their_time() -> None:
    slow = others(PipelineRequest(rate=1, seed=1, ack_delay_s=0.05))[
        "subscriber tweets"
    ]
    quick = others(PipelineRequest(rate=1, seed=1))["subscriber tweets"]

    assert slow.command[slow.command.index("--ack-delay") + 1] == "0.050000s"
    assert "--ack-delay" not in quick.command


def test_whoever_talks_to_the_broker_logs_in() -> None:
    parts = others(PipelineRequest(rate=1, seed=1, login=("me", "file")))

    login = ("--user", "me", "--password-file", "file")
    for part in parts.values():
        at = part.command.index("--user")
        assert part.command[at : at + 4] == login


def test_a_stream_may_be_told_where_it_ends() -> None:
    wanted = PipelineRequest(rate=1, seed=1, last={"1": 70, "2": 9})
    [_, source, _] = first_parts(wanted, Places(Path("data")))

    assert source.command[-2:] == ("--last=1=70", "--last=2=9")


def others(
    wanted: PipelineRequest, store: str = "postgresql://x", server: str = "h:1"
) -> dict[str, Part]:
    parts = other_parts(
        *(wanted, Places(Path("data"))), server=server, tweets="http://h:2", store=store
    )
    return {part.name: part for part in parts}
