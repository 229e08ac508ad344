"""What a reader was told: the options of Spark's Kafka source, and a few of our own.

Names are compared without their case, as Spark does. Options of Spark and of Kafka that
have no meaning here are taken and forgotten, so that a job written for Kafka runs; any
other name that is not known is an error.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.address import remote
from penstock.client.tls import Tls
from penstock.errors import InvalidOption, MissingOption, UnknownOption
from penstock.spark.offsets import MOST, Bound, bound_of
from penstock.table.connection import RETRY_S, BrokerAccess

# What a broker sees in its list of connections.
NAME = "spark"
SERVERS = ("servers", "kafka.bootstrap.servers")
# Of TLS: the option, and what the client calls it.
TLS = {"caFile": "ca_file", "certFile": "cert_file", "keyFile": "key_file"}
CONNECTION = (
    *(*SERVERS, "path", "user", "password", "passwordFile", "retrySeconds"),
    *TLS,
)
READING = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "failOnDataLoss",
    "columns",
    "valueSchema",
    "pushdown",
    "progress",
)
# Spark's own, and those of its Kafka source that have nothing to steer here.
FORGOTTEN = frozenset(
    {
        "checkpointlocation",
        "consumercachetimeout",
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
        "maxtriggerdelay",
        "minoffsetspertrigger",
        "outputmode",
        "queryname",
        "startingoffsetsbytimestampstrategy",
        "trigger",
    }
)
FORGOTTEN_FAMILIES = ("kafka.", "spark.")
# What people write when they mean another one.
MEANT = {"topic": "subscribe", "topics": "subscribe", "server": "servers"}

_WORDS = {"true": True, "false": False}
_NUMBER = re.compile(r"[0-9]{1,30}")


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """Which topics: these names, or those that a pattern fits as a whole."""

    names: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    connection: BrokerAccess
    topics: TopicSelection
    starting: Bound
    ending: Bound
    max_offsets_per_trigger: int | None
    min_partitions: int | None
    max_records_per_partition: int | None
    include_headers: bool
    fail_on_data_loss: bool
    columns: tuple[str, ...] | None
    value_schema: str | None
    pushdown: bool
    progress: str | None
    """None: a name that is made up; an empty one: nothing is reported."""


def check_names(options: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Raises UnknownOption for a name that is neither known nor to be forgotten."""
    lower = {name.lower(): name for name in known}
    for name in options:
        low = name.lower()
        if low in lower or low in FORGOTTEN or low.startswith(FORGOTTEN_FAMILIES):
            continue
        near = difflib.get_close_matches(low, lower, 1, 0.6)
        raise UnknownOption(name, MEANT.get(low) or (lower[near[0]] if near else ""))


def connection_of(options: Mapping[str, str]) -> BrokerAccess:
    """Where to read or write; raises MissingOption, InvalidOption."""
    given = _lowered(options)
    path = given.get("path")
    name = next((name for name in SERVERS if name in given), None)
    if name is None and path is None:
        raise MissingOption(("servers", "path"))
    if len({given[one] for one in SERVERS if one in given}) > 1:
        value = given[SERVERS[1]]
        raise InvalidOption(SERVERS[1], value, f"left out where {SERVERS[0]} is given")
    servers = tuple(filter(None, _split(given[name]))) if name else ()
    tls = Tls(**{field: given.get(name.lower()) for name, field in TLS.items()})
    for server in servers:
        remote(server, tls)
    if name and not servers:
        raise InvalidOption(name, given[name], "HOST:PORT, or several with commas")
    if tls != Tls() and not servers:
        raise InvalidOption("caFile", tls.ca_file, "left out without servers")
    return BrokerAccess(
        servers=servers,
        path=path,
        user=given.get("user"),
        password=given.get("password"),
        password_file=given.get("passwordfile"),
        retry_s=_seconds(given),
        tls=tls,
        name=NAME,
    )


def tls_options(tls: Tls | None) -> dict[str, str]:
    """The options that say whom to trust."""
    named = {name: getattr(tls, field, None) for name, field in TLS.items()}
    return {name: value for name, value in named.items() if value is not None}


def whole(name: str, text: str, *, at_least: int) -> int:
    """A number that 64 bits can hold; raises InvalidOption."""
    # Python refuses to read one of thousands of digits.
    number = int(text) if _NUMBER.fullmatch(text.strip()) else -1
    if not at_least <= number <= MOST:
        limit = f"a whole number, at least {at_least} and at most {MOST}"
        raise InvalidOption(name, text, limit)
    return number


def source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """All options of a reader; raises UnknownOption, MissingOption, InvalidOption."""
    check_names(options, CONNECTION + READING)
    given = _lowered(options)
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        if streaming and name.lower() in given:
            value = given[name.lower()]
            raise InvalidOption(name, value, "left out: a stream has no end")
    starting = bound_of(
        given, "starting", default="latest" if streaming else "earliest"
    )
    if not streaming and starting.is_latest:
        value = given["startingoffsets"]
        raise InvalidOption("startingOffsets", value, "earlier: nothing would be read")
    ending = bound_of(given, "ending", default="latest")
    if ending.is_earliest:
        value = given["endingoffsets"]
        raise InvalidOption("endingOffsets", value, "later: nothing would be read")
    return SourceOptions(
        connection=connection_of(options),
        topics=_topics(given),
        starting=starting,
        ending=ending,
        max_offsets_per_trigger=_count(given, "maxOffsetsPerTrigger"),
        min_partitions=_count(given, "minPartitions"),
        max_records_per_partition=_count(given, "maxRecordsPerPartition"),
        include_headers=_flag(given, "includeHeaders", default=False),
        fail_on_data_loss=_flag(given, "failOnDataLoss", default=True),
        columns=_columns(given),
        value_schema=given.get("valueschema"),
        pushdown=_flag(given, "pushdown", default=False),
        progress=_progress(given),
    )


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _topics(given: Mapping[str, str]) -> TopicSelection:
    ways = ("subscribe", "subscribePattern", "assign")
    used = [name for name in ways if name.lower() in given]
    if not used:
        raise MissingOption(ways)
    if len(used) > 1:
        value = given[used[1].lower()]
        raise InvalidOption(used[1], value, f"left out where {used[0]} is given")
    value = given[used[0].lower()]
    if used[0] == "assign":
        return TopicSelection(_assigned(value))
    if used[0] == "subscribePattern":
        try:
            re.compile(value)
        except re.error as error:
            limit = f"a regular expression ({error})"
            raise InvalidOption("subscribePattern", value, limit) from None
        return TopicSelection(pattern=value)
    names = tuple(dict.fromkeys(filter(None, _split(value))))
    if not names:
        raise InvalidOption("subscribe", value, "topics, with commas between them")
    return TopicSelection(names)


def _assigned(text: str) -> tuple[str, ...]:
    limit = 'JSON such as {"topic": [0]}: a topic has partition 0 alone'
    try:
        found = json.loads(text)
    except ValueError:
        raise InvalidOption("assign", text, limit) from None
    whole = isinstance(found, dict) and found
    if not whole or any(partitions != [0] for partitions in found.values()):
        raise InvalidOption("assign", text, limit)
    return tuple(found)


def _columns(given: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    names = tuple(filter(None, _split(given["columns"])))
    if not names or len(set(names)) < len(names):
        limit = "names of columns with commas between them, each once"
        raise InvalidOption("columns", given["columns"], limit)
    return names


def _progress(given: Mapping[str, str]) -> str | None:
    name = given.get("progress")
    if name is None:
        return None
    if name.lower() == "off":
        return ""
    return name if name.startswith("spark:") else f"spark:{name}"


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    return whole(name, text, at_least=1)


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name.lower())
    if text is None:
        return default
    if text.lower() not in _WORDS:
        raise InvalidOption(name, text, "true or false")
    return _WORDS[text.lower()]


def _seconds(given: Mapping[str, str]) -> float:
    text = given.get("retryseconds")
    if text is None:
        return RETRY_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise InvalidOption("retrySeconds", text, "a number from 0 to 86400")
    return seconds
