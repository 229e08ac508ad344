"""The command line on real data directories, in process and as a process."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import cli
from penstock.log import Columns, Log, TopicOptions
from penstock.model.event import FIELDS, Event

PAYLOADS = [b'{"n": 1}', b"plain text", b"\xff\x00", b"[1,\n 2]", b""]
PENSTOCK = [sys.executable, "-m", "penstock.cli.main"]
START_MS = 1_700_000_000_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Topic ``orders`` with all there is to an event, and others."""
    directory = tmp_path / "data"
    with Log.open(directory) as log:
        log.create_topic("orders")
        log.create_topic("audit", TopicOptions(retention_age_s=60))
        log.create_topic("empty")
        for number in range(10):
            log.append("orders", columns(number))
            log.commit()
        log.append("audit", Columns([b"x" * 100] * 1000, START_MS))
        log.checkpoint()
        log.append("orders", Columns([b"last"], START_MS + 99))
    return directory


def columns(number: int) -> Columns:
    times = [START_MS + number * 5 + index for index in range(5)]
    return Columns(
        PAYLOADS,
        times,
        ids=["given", None, None, None, None],
        keys=[b"k", None, b"\xfe", b"", b"k"],
        priorities=[0, 1, 2, 3, 255],
        headers=[{}, {"a": "b"}, {}, {"ü": "ß", "c": "d"}, {}],
        parents=[None, "parent", None, None, None],
        producer="someone",
    )


@pytest.fixture
def events(data: Path) -> list[Event]:
    """What the log itself says."""
    with Log.open(data) as log:
        batches = log.read("orders", 0, 1 << 30)
        return [event for batch in batches for event in batch.events()]


# stat


def test_stat_lists_the_topics(data: Path) -> None:
    result = run("log", "stat", data)

    rows = [line.split() for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert ["orders", "1", "0..51", "51"] in [row[:4] for row in rows]
    assert ["empty", "3", "0..0", "0"] in [row[:4] for row in rows]
    assert "retention_age_s=60" in result.stdout


def test_stat_as_json_says_the_same(data: Path) -> None:
    found = json.loads(run("log", "stat", data, "--json").stdout)

    topics = {topic["name"]: topic for topic in found["topics"]}
    assert found["directory"] == str(data)
    assert found["writer_pid"] is None
    assert found["journal"]["files"] == len(list((data / "journal").iterdir()))
    assert topics["orders"]["events"] == 51
    assert topics["orders"]["first_timestamp_ms"] == START_MS
    assert topics["orders"]["max_timestamp_ms"] == START_MS + 99
    assert topics["audit"]["options"]["retention_age_s"] == 60


def test_stat_works_beside_a_writer(data: Path) -> None:
    with Log.open(data) as log:
        log.append("empty", Columns([b"x"], START_MS))
        log.sync()

        found = json.loads(run("log", "stat", data, "--json").stdout)

    assert found["writer_pid"] == os.getpid()
    assert {t["name"]: t["events"] for t in found["topics"]}["empty"] == 1


# dump


def test_dump_shows_events_with_their_metadata(data: Path) -> None:
    lines = run("log", "dump", data, "orders", "--from", 3, "--count", 1).stdout

    assert lines.splitlines() == [
        "offset 3  2023-11-14T22:13:20.003Z",
        lines.splitlines()[1],
        "  priority  3",
        "  key       ",
        "  header    ü: ß",
        "  header    c: d",
        "  producer  someone",
        "  payload   7 bytes: [1,\\n 2]",
    ]


def test_dump_shows_a_few_unless_told(data: Path) -> None:
    text = run("log", "dump", data, "orders").stdout

    assert text.count("  payload ") == 20


def test_dump_as_json_is_whole(data: Path) -> None:
    lines = run("log", "dump", data, "audit", "--json", "--count", 3).stdout

    assert [json.loads(line)["payload"] for line in lines.splitlines()] == [
        "x" * 100
    ] * 3


def test_dump_shows_frames(data: Path) -> None:
    text = run("log", "dump", data, "orders", "--frames", "--count", 2).stdout
    as_json = run("log", "dump", data, "orders", "--frames", "--json").stdout

    frames = [json.loads(line) for line in as_json.splitlines()]
    assert text.count("frame of offsets") == 2
    assert [frame["events"] for frame in frames] == [50, 1]
    assert set(frames[0]["columns"]) == {
        *("timestamp", "priority", "id", "key"),
        *("headers", "payload", "parent", "producer"),
    }


def test_dump_of_an_empty_topic_is_empty(data: Path) -> None:
    result = run("log", "dump", data, "empty")

    assert (result.exit_code, result.stdout) == (0, "")


# verify


def test_verify_of_a_good_directory_exits_with_0(data: Path) -> None:
    result = run("log", "verify", data)
    found = json.loads(run("log", "verify", data, "--json").stdout)

    assert result.exit_code == 0
    assert result.stdout.startswith("all intact: ")
    assert "1051 events" in result.stdout
    assert (found["damages"], found["events"]) == ([], 1051)


def test_verify_of_a_damaged_directory_lists_it_and_exits_with_1(data: Path) -> None:
    segment = flip(data, "audit")

    result = run("log", "verify", data)
    as_json = run("log", "verify", data, "--json")

    (damage,) = json.loads(as_json.stdout)["damages"]
    assert result.exit_code == as_json.exit_code == 1
    assert result.stderr == ""
    assert f"damaged: {segment}: " in result.stdout
    assert "(topic audit, offsets 0..999)" in result.stdout
    assert damage["file"] == segment
    assert damage["reason"] == "frame fails its checksum"
    assert (damage["first_offset"], damage["end_offset"]) == (0, 1000)


def test_the_rest_of_a_damaged_directory_stays_readable(data: Path) -> None:
    flip(data, "audit")

    assert len(run("log", "export", data, "orders").stdout.splitlines()) == 51
    assert run("log", "export", data, "audit").stdout == ""


def test_a_repaired_start_does_not_hide_damage(data: Path) -> None:
    flip(data, "audit")
    Log.open(data).close()

    assert run("log", "verify", data).exit_code == 1
    assert "1 quarantined range" in run("log", "stat", data).stdout


# export


def test_json_lines_hold_every_event(data: Path, events: list[Event]) -> None:
    result = run("log", "export", data, "orders", "--format", "jsonl")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [restored(line) for line in lines] == events


def test_json_lines_may_go_to_a_file(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "orders.jsonl"

    result = run("log", "export", data, "orders", "--out", out)

    assert (result.exit_code, result.output) == (0, "")
    assert out.read_text() == run("log", "export", data, "orders").stdout


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (["--from", "48"], [48, 49, 50]),
        (["--to", "2"], [0, 1]),
        (["--from", "4", "--to", "6"], [4, 5]),
        (["--from", "51"], []),
        (["--to", "1000", "--from", "50"], [50]),
    ],
)
def test_a_part_may_be_exported(
    data: Path, options: list[str], offsets: list[int]
) -> None:
    result = run("log", "export", data, "orders", *options)

    lines = result.stdout.splitlines()
    assert [json.loads(line)["offset"] for line in lines] == offsets


def test_parquet_holds_every_event(
    data: Path, tmp_path: Path, events: list[Event]
) -> None:
    out = tmp_path / "orders.parquet"

    run("log", "export", data, "orders", "--format", "parquet", "--out", out)

    table = pq.read_table(out)
    assert table.schema.metadata[b"penstock.topic"] == b"orders"
    assert [of_row(row) for row in rows(table)] == events


def test_arrow_holds_every_event(
    data: Path, tmp_path: Path, events: list[Event]
) -> None:
    out = tmp_path / "orders.arrow"

    run("log", "export", data, "orders", "--format", "arrow", "--out", out)

    with pa.ipc.open_file(out) as reader:
        assert [of_row(row) for row in rows(reader.read_all())] == events


@pytest.mark.parametrize("format_", ["jsonl", "parquet", "arrow"])
def test_an_empty_topic_can_be_exported(data: Path, tmp_path: Path, format_) -> None:
    out = tmp_path / "out"

    result = run("log", "export", data, "empty", "--format", format_, "--out", out)

    assert result.exit_code == 0
    assert out.exists()


# Errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dump", "DATA", "order"], "error: topic order does not exist\nhint: did you"),
        (["export", "DATA", "ordres"], "hint: did you mean orders?"),
        (
            ["dump", "DATA", "orders", "--from", "52"],
            "error: offset 52 of topic",
        ),
        (["export", "DATA", "orders", "--from", "52"], "outside 0..51"),
        (["stat", "missing"], "missing is not a Penstock data directory\nhint: give"),
        (["verify", "missing"], "missing is not a Penstock data directory\nhint: give"),
        (["dump", "missing", "t"], "is not a Penstock data directory"),
        (["export", "missing", "t"], "is not a Penstock data directory"),
    ],
)
def test_errors_name_the_thing_and_exit_with_2(
    data: Path, arguments: list[str], said: str
) -> None:
    placed = [str(data) if one == "DATA" else one for one in arguments]

    result = run("log", *placed)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize("command", ["export", "dump"])
def test_what_is_left_out_is_warned_of(data: Path, command: str) -> None:
    segment = flip(data, "audit")

    done = run("log", command, data, "audit")

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith(f"warning: left out: {segment}: ")


# As a process


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
def test_binary_formats_go_through_a_pipe(data: Path, format_: str) -> None:
    done = spawn("log", "export", str(data), "orders", "--format", format_)

    assert done.returncode == 0
    assert done.stderr == b""
    if format_ == "parquet":
        table = pq.read_table(io.BytesIO(done.stdout))
    else:
        table = pa.ipc.open_file(done.stdout).read_all()
    assert table["offset"].to_pylist() == list(range(51))


def test_exit_codes_reach_the_shell(data: Path) -> None:
    flip(data, "audit")
    damaged = spawn("log", "verify", str(data)).returncode
    missing = spawn("log", "verify", str(data / "missing")).returncode

    assert (damaged, missing) == (1, 2)


def test_a_reader_that_leaves_early_is_no_error(data: Path) -> None:
    with Log.open(data) as log:
        log.append("empty", Columns([b"x" * 1000] * 1000, START_MS))
    command = [*PENSTOCK, "log", "export", str(data), "empty"]
    pipe = subprocess.PIPE

    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (141, b"")


@pytest.mark.slow
def test_the_demonstration_runs_and_leaves_nothing(tmp_path: Path) -> None:
    done = spawn("demo", env={"TMPDIR": str(tmp_path)})

    assert done.returncode == 0, done.stderr.decode()
    assert b"0 are missing" in done.stdout
    assert list(tmp_path.iterdir()) == []


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def spawn(*arguments: str, env: dict[str, str] | None = None):
    command = [*PENSTOCK, *arguments]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, capture_output=True, env=environment)


def flip(data: Path, topic: str) -> str:
    """Flip a bit in the middle of a topic's first segment; the segment."""
    segment = sorted(data.glob(f"topics/{topic}-*/*.seg"))[0]
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    return str(segment.relative_to(data))


def restored(line: dict) -> Event:
    """The event that a JSON line tells of."""
    payload, key = line["payload"], line["key"]
    match line["payload_encoding"]:
        case "json":
            # The one payload with a line break is written without it.
            data = b"[1,\n 2]" if payload == [1, 2] else json.dumps(payload).encode()
        case "base64":
            data = base64.b64decode(payload)
        case _:
            data = payload.encode()
    if key is not None:
        text = line["key_encoding"] == "text"
        key = key.encode() if text else base64.b64decode(key)
    return Event(
        topic=line["topic"],
        offset=line["offset"],
        id=line["id"],
        timestamp_ms=line["timestamp"],
        payload=data,
        key=key,
        priority=line["priority"],
        headers=line["headers"],
        parent=line["parent"],
        producer=line["producer"],
    )


def rows(table: pa.Table) -> list[dict]:
    for field in FIELDS:
        if field.kind == "time":
            at = table.schema.get_field_index(field.name)
            times = table[field.name].cast(pa.int64())
            table = table.set_column(at, field.attribute, times)
    return table.to_pylist()


def of_row(row: dict) -> Event:
    return Event(**{**row, "topic": "orders", "headers": dict(row["headers"])})
