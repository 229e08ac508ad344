from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InvalidOption, MissingOption, PenstockError, UnknownOption
from penstock.spark.options import (
    CONNECTION,
    READING,
    check_names,
    connection_of,
    source_options,
)
from penstock.table.connection import RETRY_S

BASIC = {"servers": "localhost:7040", "subscribe": "t"}


def test_defaults_of_a_table() -> None:
    options = source_options(BASIC, streaming=False)

    assert options.connection.servers == ("localhost:7040",)
    assert options.connection.retry_s == RETRY_S
    assert options.topics.names == ("t",)
    assert options.starting.is_earliest
    assert options.ending.is_latest
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.progress is None


def test_a_stream_starts_at_the_latest() -> None:
    assert source_options(BASIC, streaming=True).starting.is_latest


def test_names_have_no_case() -> None:
    given = {"SERVERS": "h:1", "Subscribe": "a, b,a", "FAILONDATALOSS": "False"}

    options = source_options(given, streaming=False)

    assert options.topics.names == ("a", "b")
    assert not options.fail_on_data_loss


def test_a_job_written_for_kafka_is_understood() -> None:
    given = {
        "kafka.bootstrap.servers": "h:1,i:2",
        "kafka.group.id": "g",
        "subscribePattern": "orders.*",
        "startingOffsets": "earliest",
        "fetchOffset.numRetries": "3",
        "kafkaConsumer.pollTimeoutMs": "512",
        "groupIdPrefix": "x",
        "maxOffsetsPerTrigger": "1000",
        "minPartitions": "4",
        "includeHeaders": "true",
    }

    options = source_options(given, streaming=True)

    assert options.connection.servers == ("h:1", "i:2")
    assert options.topics.pattern == "orders.*"
    assert (options.max_offsets_per_trigger, options.min_partitions) == (1000, 4)
    assert options.include_headers


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("startingOfsets", "startingOffsets"),
        ("topic", "subscribe"),
        ("server", "servers"),
        ("zzz", ""),
    ],
)
def test_an_unknown_option_names_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownOption) as caught:
        source_options({**BASIC, name: "1"}, streaming=False)

    assert (caught.value.name, caught.value.nearest) == (name, nearest)


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "no place": ({"subscribe": "t"}, "one of the options servers, path is needed"),
    "no topic": ({"path": "d"}, "one of the options subscribe, subscribePattern"),
    "two ways": (BASIC | {"assign": "{}"}, "assign is '{}': must be left out where"),
    "no host": (
        {"servers": ",", "subscribe": "t"},
        "servers is ',': must be HOST:PORT",
    ),
    "bad host": (
        {"servers": "h", "subscribe": "t"},
        "server is 'h': must be HOST:PORT",
    ),
    "no names": (BASIC | {"subscribe": ","}, "subscribe is ',': must be topics"),
    "pattern": (
        {"path": "d", "subscribePattern": "("},
        "subscribePattern is '(': must be a regular expression",
    ),
    "assign no JSON": ({"path": "d", "assign": "x"}, "assign is 'x': must be JSON"),
    "assign a list": ({"path": "d", "assign": "[1]"}, "assign is '[1]': must be JSON"),
    "other partition": (
        {"path": "d", "assign": '{"t": [1]}'},
        "a topic has partition 0 alone",
    ),
    "latest table": (BASIC | {"startingOffsets": "latest"}, "nothing would be read"),
    "earliest end": (BASIC | {"endingOffsets": "earliest"}, "nothing would be read"),
    "no number": (
        BASIC | {"minPartitions": "x"},
        "minPartitions is 'x': must be a whole number",
    ),
    "zero": (BASIC | {"maxOffsetsPerTrigger": "0"}, "must be a whole number, at least"),
    "no flag": (
        BASIC | {"includeHeaders": "ja"},
        "includeHeaders is 'ja': must be true",
    ),
    "no columns": (BASIC | {"columns": " "}, "columns is ' ': must be names"),
    "columns twice": (BASIC | {"columns": "key,key"}, "each once"),
    "large": (
        BASIC | {"minPartitions": "1" * 25},
        "must be a whole number, at least 1 and at most 9223372036854775807",
    ),
    "huge": (BASIC | {"maxOffsetsPerTrigger": "1" * 5000}, "must be a whole number"),
    "two places": (
        BASIC | {"kafka.bootstrap.servers": "other:1"},
        "kafka.bootstrap.servers is 'other:1': must be left out where servers is given",
    ),
    "seconds": (BASIC | {"retrySeconds": "soon"}, "must be a number from 0 to 86400"),
    "past seconds": (
        BASIC | {"retrySeconds": "-1"},
        "must be a number from 0 to 86400",
    ),
}


@pytest.mark.parametrize(("given", "text"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_one_line(given: dict[str, str], text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        source_options(given, streaming=False)

    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"]
)
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(InvalidOption, match=f"{name} is '1': .* a stream has no end"):
        source_options({**BASIC, name: "1"}, streaming=True)


def test_topics_may_be_assigned() -> None:
    options = source_options(
        {"path": "d", "assign": '{"a,b": [0], "c": [0]}'}, streaming=False
    )

    assert options.topics.names == ("a,b", "c")


@pytest.mark.parametrize(
    ("said", "name"),
    [("off", ""), ("OFF", ""), ("orders", "spark:orders"), ("spark:x", "spark:x")],
)
def test_progress_has_a_name_or_is_off(said: str, name: str) -> None:
    options = source_options({**BASIC, "progress": said}, streaming=True)

    assert options.progress == name


def test_columns_are_chosen_by_name() -> None:
    options = source_options({**BASIC, "columns": "value, offset"}, streaming=False)

    assert options.columns == ("value", "offset")


def test_a_password_comes_from_a_file_where_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hush\n")
    given = {"servers": "h:1", "user": "me", "passwordFile": str(file)}

    connection = connection_of(given)

    assert (connection.user, connection.secret()) == ("me", "hush")
    file.unlink()
    with pytest.raises(InvalidOption, match="passwordFile"):
        connection.secret()


def test_a_file_that_is_no_text_is_no_password(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"h\xffsh")
    connection = connection_of({"path": "d", "passwordFile": str(file)})

    with pytest.raises(InvalidOption, match="passwordFile is .* text in UTF-8"):
        connection.secret()


def test_a_password_may_be_said() -> None:
    assert connection_of({"path": "d", "password": "p"}).secret() == "p"


def test_a_password_is_not_shown() -> None:
    options = source_options({**BASIC, "password": "hush"}, streaming=False)

    assert "hush" not in repr(options) + repr(options.connection)


def test_one_address_may_have_both_names() -> None:
    given = {"servers": "h:1", "kafka.bootstrap.servers": "h:1"}

    assert connection_of(given).servers == ("h:1",)


def test_a_connection_needs_a_place() -> None:
    with pytest.raises(MissingOption):
        connection_of({})


def test_others_check_their_names_in_the_same_way() -> None:
    check_names({"topic": "t", "path": "d"}, (*CONNECTION, "topic"))

    with pytest.raises(UnknownOption, match="subscribe"):
        check_names({"subscribe": "t"}, (*CONNECTION, "topic"))


def test_every_option_is_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "spark.md"

    assert [
        name for name in CONNECTION + READING if f"`{name}`" not in page.read_text()
    ] == []
