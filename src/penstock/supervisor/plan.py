"""Which parts ``penstock up`` consists of, and the command of each."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.supervisor.part import Part, Places

PENSTOCK = (sys.executable, "-m", "penstock.cli.main")
COLLECTIONS = ("tweets", "users", "users_engagements")
FIREHOSE = "firehose"
SAMPLES = "pipeline_samples"
STREAMS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """0 picks a free one."""

    line: int = 8000
    native: int = 8410
    control: int = 8080
    tweets: int = 4000
    store: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asked for. ``store``: of his own, by URL; None: the one we run."""

    rate: float
    seed: int
    spark: bool = True
    store: str | None = None
    master: str = "local[2]"
    trigger: str = "1s"
    ports: Ports = Ports()
    count: int | None = None
    serve: tuple[str, ...] = ()


def ports_of(told: Mapping[str, Mapping[str, Any]], wanted: Ports) -> Ports:
    """Where the first parts are, by what they said when they were ready."""
    broker = told["broker"]["ports"]
    return Ports(
        line=broker.get("line", wanted.line),
        native=broker["native"],
        control=broker.get("control", wanted.control),
        tweets=urlsplit(told["source"]["url"]).port or wanted.tweets,
        store=told.get("store", {}).get("port", wanted.store),
    )


def topics(wanted: Wanted) -> tuple[str, ...]:
    """What subscribers read; it has to be there before they come."""
    return (FIREHOSE, *COLLECTIONS) if wanted.spark else (FIREHOSE,)


def subscriber(topic: str) -> str:
    """Who acknowledges what comes to a topic."""
    return f"up-{topic}"


def without_secret(url: str) -> tuple[str, dict[str, str]]:
    """A URL that everybody may see, and what else its drivers need, as environment.

    Command lines are seen by everybody. MongoDB's driver takes its password nowhere
    else, though.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres") or parts.password is None:
        return url, {}
    who, _, where = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=f"{who.partition(':')[0]}@{where}")
    return shown.geturl(), {"PGPASSWORD": unquote(parts.password)}


def first_parts(wanted: Wanted, places: Places) -> list[Part]:
    """Those that need nobody; where they are is known when they are ready."""
    ports = wanted.ports
    broker = Part(
        name="broker",
        command=(
            *(*PENSTOCK, "serve", "--data", str(places.broker)),
            *("--line-port", str(ports.line), "--native-port", str(ports.native)),
            *("--control-port", str(ports.control), *wanted.serve),
        ),
        says_status=False,
    )
    count = () if wanted.count is None else ("--count", str(wanted.count))
    source = Part(
        name="source",
        command=(
            *(*PENSTOCK, "tweets", "serve", "--port", str(ports.tweets)),
            *("--rate", str(wanted.rate), "--seed", str(wanted.seed), *count),
        ),
    )
    store = Part(
        name="store",
        command=(
            *(*PENSTOCK, "store", "run", "--data", str(places.store)),
            *("--port", str(ports.store)),
        ),
    )
    own_store = wanted.spark and wanted.store is None
    return [broker, source, *([store] if own_store else [])]


def other_parts(
    wanted: Wanted, places: Places, *, server: str, tweets: str, store: str
) -> list[Part]:
    """Those that talk to the first ones; ``store`` is a URL."""
    store, secret = without_secret(store)
    urls = [f"{tweets}/tweets/{number}" for number in STREAMS]
    ingest = Part(
        name="ingest",
        command=(
            *(*PENSTOCK, "ingest", "sse", *urls, "--topic", FIREHOSE),
            # By name, not by address: that may be another one the next time.
            *(
                option
                for number in STREAMS
                for option in ("--name", f"tweets-{number}")
            ),
            *("--key", "message.tweet.id_str", "--samples", SAMPLES),
            *("--server", server),
        ),
        needs=("broker", "source"),
    )
    cdc = Part(
        name="cdc",
        command=(
            *(*PENSTOCK, "cdc", "run", "--store", store, "--server", server),
            *("--collections", ",".join(COLLECTIONS), "--document", "doc"),
        ),
        needs=("broker", "store") if wanted.store is None else ("broker",),
        environment=secret,
    )
    spark = Part(
        name="spark",
        command=(
            *(*PENSTOCK, "pipeline", "run", "--server", server, "--store", store),
            *("--checkpoint", str(places.checkpoints), "--master", wanted.master),
            *("--trigger", wanted.trigger),
        ),
        # What is written before the capture of changes is ready would not be seen.
        needs=("broker", "cdc"),
        environment={"SPARK_LOCAL_DIRS": str(places.scratch), **secret},
        # It would look for a broker that is gone, a minute for each query.
        orphaned=signal.SIGKILL,
    )
    read = COLLECTIONS if wanted.spark else (FIREHOSE,)
    readers = [
        Part(
            name=f"subscriber {topic}",
            command=(
                *(*PENSTOCK, "subscribe", topic, "--as", subscriber(topic)),
                *("--from", "earliest", "--rates", "--server", server),
            ),
            needs=("broker",),
            says_ready=False,
            says_status=False,
        )
        for topic in read
    ]
    return [ingest, *([cdc, spark] if wanted.spark else []), *readers]
