"""What is read: topics of 200-byte JSON events, and Parquet files of the same rows."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.log import Columns, Log, TopicOptions

TOPIC = "events"
PAYLOAD_BYTES = 200
# Events of a frame: what a client that publishes many at a time stores.
FRAME_EVENTS = 1000
START_MS = 1_767_225_600_000  # the year 2026
# Events of one second of the topic's time.
PER_S = 10_000
USERS = 10_007
COUNTRIES = (b"at", b"de", b"es", b"fr", b"it", b"nl", b"pl")
FIELDS = (
    "user STRING, at TIMESTAMP, country STRING, amount DOUBLE, count INT, note STRING"
)

_DAY = 86_400 * PER_S


def payload(number: int) -> bytes:
    """JSON with six fields; no two are equal."""
    second, part = divmod(number % _DAY, PER_S)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    text = (
        b'{"user":"user-%05d","at":"2026-01-01T%02d:%02d:%02d.%04dZ","country":"%s"'
        b',"amount":%d.%02d,"count":%d,"note":"%012d'
        % (
            number % USERS,
            hour,
            minute,
            second,
            part,
            COUNTRIES[number % 7],
            number % 1000,
            number % 97,
            number % 9,
            number,
        )
    )
    return text.ljust(PAYLOAD_BYTES - 2, b".") + b'"}'


def payloads(start: int, count: int) -> list[bytes]:
    return [payload(number) for number in range(start, start + count)]


def fill(directory: Path, events: int) -> None:
    """A data directory with one topic; every event has a key and its own time."""
    options = TopicOptions(durability="os")
    with Log.open(directory) as log:
        log.create_topic(TOPIC, options)
        for start in range(0, events, FRAME_EVENTS):
            count = min(FRAME_EVENTS, events - start)
            numbers = range(start, start + count)
            times = [START_MS + number * 1000 // PER_S for number in numbers]
            keys: list[bytes | None] = [b"user-%05d" % (n % USERS) for n in numbers]
            log.append(TOPIC, Columns(payloads(start, count), times, keys=keys))
            log.commit(sync=False)


def table(spark: SparkSession, **options: object) -> DataFrame:
    """The topic; ``path`` or ``servers`` say where it is."""
    given = {name: str(value) for name, value in options.items()}
    return spark.read.format("penstock").options(subscribe=TOPIC, **given).load()


def write_parquet(spark: SparkSession, directory: Path, target: Path) -> None:
    """All columns as Spark itself writes them."""
    table(spark, path=directory).write.parquet(str(target))
