"""Which parts ``penstock up`` consists of, and the command of each."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from penstock.client.address import SECURE
from penstock.store.store import VARIABLE
from penstock.supervisor.part import Part, Places

PENSTOCK = (sys.executable, "-m", "penstock.cli.main")
ENGAGEMENTS = "users_engagements"
COLLECTIONS = ("tweets", "users", ENGAGEMENTS)
# What people see of a change: the text of a tweet, and who it is of the others.
MESSAGES = {
    "tweets": "text",
    "users": "screen_name",
    ENGAGEMENTS: "screen_name",
}
# Likes and retweets for each follower. Of made-up tweets four in ten have less than the
# first, and each further level is of about one in ten.
PRIORITY = "tweets=engagement_score:0.01,0.03,0.1,0.3,1,3"
FIREHOSE = "firehose"
SAMPLES = "pipeline_samples"
STREAMS = (1, 2)
# Tweets are stored so often: few batches are cheap, and Spark takes longer than that.
LINGER = "200ms"
# The setting of the broker that says where the run tells of its stages.
VIEW = "PENSTOCK_HTTP_PIPELINE_STATUS"
# The directory whose token commands use by themselves.
DATA = "PENSTOCK_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePorts:
    """0 picks a free one."""

    line: int = 8000
    native: int = 8410
    control: int = 8080
    http: int = 8420
    tweets: int = 4000
    store: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """What a person asked for. ``store``: of his own, by URL; None: the one we run.

    ``ack_delay_s``: how long subscribers wait before each ack. ``login``: user and
    password file, if the broker asks for them. ``ca_file``: whom to trust, if the
    broker speaks TLS. ``last``: where streams end, by name. ``conf``: of Spark.
    ``resting``: streams begin when a client asks for them.
    """

    rate: float
    seed: int
    spark: bool = True
    store: str | None = None
    master: str = "local[2]"
    conf: tuple[tuple[str, str], ...] = ()
    trigger_s: float = 1.0
    ports: PipelinePorts = PipelinePorts()
    count: int | None = None
    ack_delay_s: float | None = None
    login: tuple[str, str] | None = None
    ca_file: str | None = None
    last: Mapping[str, int] = field(default_factory=dict)
    serve: tuple[str, ...] = ()
    resting: bool = False


def ports_of(
    ready: Mapping[str, Mapping[str, Any]], wanted: PipelinePorts
) -> PipelinePorts:
    """Where the first parts are, by what they said when they were ready."""
    broker = ready["broker"]["ports"]
    return PipelinePorts(
        line=broker.get("line", wanted.line),
        native=broker["native"],
        control=broker.get("control", wanted.control),
        http=broker.get("http", wanted.http),
        tweets=urlsplit(ready["source"]["url"]).port or wanted.tweets,
        store=ready.get("store", {}).get("port", wanted.store),
    )


def subscriber(topic: str) -> str:
    """Who acknowledges what comes to a topic."""
    return f"up-{topic}"


def first_parts(wanted: PipelineRequest, places: Places) -> list[Part]:
    """Those that need no other; where they are is known when they are ready."""
    ports = wanted.ports
    broker = Part(
        name="broker",
        command=(
            *(*PENSTOCK, "serve", "--data", str(places.broker)),
            *("--line-port", str(ports.line), "--native-port", str(ports.native)),
            *("--control-port", str(ports.control), "--http-port", str(ports.http)),
            *wanted.serve,
        ),
        environment={VIEW: str(places.view)},
        says_status=False,
    )
    count = () if wanted.count is None else ("--count", str(wanted.count))
    last = (f"--last={name}={last}" for name, last in sorted(wanted.last.items()))
    source = Part(
        name="source",
        command=(
            *(*PENSTOCK, "tweets", "serve", "--port", str(ports.tweets)),
            *("--rate", str(wanted.rate), "--seed", str(wanted.seed), *count, *last),
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
    wanted: PipelineRequest, places: Places, *, server: str, tweets: str, store: str
) -> list[Part]:
    """Those that talk to the first ones; ``store`` is a URL."""
    secret = {VARIABLE: store}
    to_broker = ("--server", server, *_login(wanted), *_trust(wanted, server))
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
            *("--linger", LINGER),
            *to_broker,
        ),
        needs=("broker", "source"),
        # The source sends nothing while it has no reader: no tweet waits for Spark.
        after=("spark",) if wanted.spark else (),
        rests=wanted.resting,
    )
    cdc = Part(
        name="cdc",
        command=(
            *(*PENSTOCK, "cdc", "run", *to_broker),
            *("--collections", ",".join(COLLECTIONS), "--document", "doc"),
            *(f"--message={name}={field}" for name, field in MESSAGES.items()),
            *("--priority", PRIORITY),
        ),
        needs=("broker", "store") if wanted.store is None else ("broker",),
        environment=secret,
    )
    spark = Part(
        name="spark",
        command=(
            *(*PENSTOCK, "pipeline", "run", *to_broker),
            *("--checkpoint", str(places.checkpoints), "--master", wanted.master),
            *("--trigger", f"{wanted.trigger_s:.6f}s"),
            *(f"--conf={name}={value}" for name, value in wanted.conf),
        ),
        # What is written before the capture of changes is ready would not be seen.
        needs=("broker", "cdc"),
        environment={"SPARK_LOCAL_DIRS": str(places.scratch), **secret},
        # It would look for a broker that is gone, for a minute.
        orphaned=signal.SIGKILL,
    )
    read = COLLECTIONS if wanted.spark else (FIREHOSE,)
    delay_s = wanted.ack_delay_s
    delay = () if delay_s is None else ("--ack-delay", f"{delay_s:.6f}s")
    readers = [
        Part(
            name=f"subscriber {topic}",
            command=(
                *(*PENSTOCK, "subscribe", topic, "--as", subscriber(topic)),
                *("--from", "earliest", "--rates", *delay, *to_broker),
            ),
            needs=("broker",),
            # Not one of another server, which this one would refuse.
            environment={DATA: str(places.broker)},
            says_ready=False,
            says_status=False,
        )
        for topic in read
    ]
    return [ingest, *([cdc, spark] if wanted.spark else []), *readers]


def _trust(wanted: PipelineRequest, server: str) -> tuple[str, ...]:
    if wanted.ca_file is None or not server.startswith(SECURE):
        return ()
    return "--ca-file", wanted.ca_file


def _login(wanted: PipelineRequest) -> tuple[str, ...]:
    if wanted.login is None:
        return ()
    user, file = wanted.login
    return ("--user", user, "--password-file", file)
