"""``penstock sql`` on a data directory, an embedded application and a server."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.access.grants import Rule
from penstock.cli.main import cli
from penstock.client import connect
from penstock.http.key_file import KeyFile
from penstock.server.users_file import set_password, set_rules
from tests.serving import PENSTOCK, serving


class Order(msgspec.Struct):
    user: str
    total: int


ORDERS = penstock.Topic("orders", Order)
BY_USER = "SELECT user, sum(total) AS total FROM orders GROUP BY user ORDER BY user"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that nobody serves: typed orders, and notes that are text."""
    directory = tmp_path_factory.mktemp("sql") / "data"
    with penstock.open(directory) as broker:
        fill(broker)
    return directory


def fill(broker: penstock.BlockingBroker) -> None:
    for number in range(6):
        broker.publish(ORDERS, Order(f"u{number % 2}", number), id=f"o{number}")
    broker.publish("notes.txt", b"one\ntwo", key=b"k")


def sql(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["sql", *arguments])


def lines(*arguments: str) -> list[str]:
    result = sql(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_fields_of_typed_payloads_are_columns(data: Path) -> None:
    assert lines(BY_USER, "--data", str(data)) == [
        "user  total",
        "u0        6",
        "u1        9",
    ]


def test_an_embedded_application_is_asked_while_it_runs(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as broker:
        fill(broker)
        result = sql(BY_USER, "--data", str(tmp_path / "data"), "--csv")

    assert result.stdout.splitlines() == ["user,total", "u0,6", "u1,9"]
    assert "note:" not in result.stderr


def test_a_server_is_asked_over_the_network(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with connect(server.data) as client:
            client.publish("t", [b"a", b"b", b"c"])
            client.publish("u", [b'{"n": 1}', b"no JSON"])
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
            client.ask("schemas.register", topic="v", schema=schema)
            client.publish("v", [b'{"n": 7}'])
        address = f"127.0.0.1:{server.ports['native']}"

        found = lines("SELECT offset, value FROM t", "--server", address)
        typed = lines("SELECT n FROM v", "--server", address)
        odd = sql("SELECT value->>'$.n' FROM u", "--server", address)
        good = lines(
            "SELECT value->>'$.n' AS n FROM u WHERE json_valid(value)",
            *("--server", address),
        )

    assert found == ["offset  value", "     0  a", "     1  b", "     2  c"]
    assert typed == ["n", "7"]
    assert odd.exit_code == 2
    assert odd.stderr == (
        "error: a payload is no JSON\n"
        "hint: leave out what is no JSON: WHERE json_valid(value)\n"
    )
    assert good == ["n", "1"]


def test_what_a_user_may_not_read_is_not_answered(tmp_path: Path) -> None:
    users = tmp_path / "users"
    set_password(users, "anna", "secret")
    set_rules(users, "anna", (Rule("read", "open"),))
    password = tmp_path / "password"
    password.write_text("secret\n")
    with serving(tmp_path, "--users-file", str(users)) as server:
        with connect(server.data) as client:
            client.publish("open", [b"a"])
            client.publish("secret", [b"b"])
        login = [
            *("--server", f"127.0.0.1:{server.ports['native']}"),
            *("--user", "anna", "--password-file", str(password)),
        ]

        found = lines("SELECT value FROM open", *login)
        refused = sql("SELECT value FROM secret", *login)

    assert found == ["value", "a"]
    assert refused.exit_code == 2
    assert "b" not in refused.stdout


def test_payloads_that_do_not_fit_are_not_passed_over_in_silence(
    tmp_path: Path,
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with serving(tmp_path) as server:
        with connect(server.data) as client:
            client.publish("t", [b'{"n": 1}', b"no JSON"])
            client.ask("schemas.register", topic="t", schema=schema)

        result = sql("SELECT n FROM t ORDER BY n", "--data", str(server.data))

    assert result.stdout.split() == ["n", "1", "NULL"]
    assert "note: 1 payloads of t do not fit its schema" in result.stderr


def test_text_is_text_and_times_are_in_utc(data: Path) -> None:
    (line,) = lines('SELECT * FROM "notes.txt"', "--data", str(data), "--json")

    row = json.loads(line)
    assert lines(BY_USER, "--data", str(data), "--json") == [
        '{"user":"u0","total":6}',
        '{"user":"u1","total":9}',
    ], "a sum is a number, however wide DuckDB makes it"
    assert (row["value"], row["key"], row["offset"]) == ("one\ntwo", "k", 0)
    assert (row["parent"], row["headers"]) == (None, {})
    assert row["timestamp"].endswith("Z")


def test_csv_quotes_what_needs_it(data: Path) -> None:
    query = 'SELECT value, parent, true AS yes FROM "notes.txt"'
    result = sql(query, "--csv", "--data", str(data))

    found = list(csv.reader(io.StringIO(result.stdout)))
    assert found == [["value", "parent", "yes"], ["one\ntwo", "", "true"]]


def test_parquet_is_one_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "orders.parquet"

    said = lines(
        *("SELECT id, total FROM orders", "--data", str(data)),
        *("--parquet", str(file), "--limit", "4"),
    )
    joined = lines(f"SELECT count(*) FROM '{file}'", "--csv", "--data", str(data))

    assert said == []
    assert pq.read_table(file).to_pydict() == {
        "id": ["o0", "o1", "o2", "o3"],
        "total": [0, 1, 2, 3],
    }
    assert joined[1:] == ["4"]
    assert list(tmp_path.iterdir()) == [file]


def test_of_several_questions_each_is_answered(data: Path, tmp_path: Path) -> None:
    both = "SELECT count(*) AS n FROM orders; SELECT 'a;b' AS t;"
    file = tmp_path / "both.parquet"

    found = lines(both, "--data", str(data))
    refused = sql(both, "--data", str(data), "--parquet", str(file))

    assert found == ["n", "6", "t", "a;b"]
    assert "2 statements: a Parquet file holds one answer" in refused.stderr
    assert not file.exists()


def test_a_table_says_that_there_is_more(data: Path) -> None:
    result = sql("SELECT id FROM orders", "--limit", "2", "--data", str(data))

    assert result.stdout.splitlines() == ["id", "o0", "o1"]
    assert "… the first 2 rows; more with --limit" in result.stderr


def test_whoever_stops_reading_gets_no_traceback(data: Path) -> None:
    """The broken pipe that people saw: head has what it wants, and goes."""
    query = "SELECT repeat('x', 1000) FROM range(100000)"
    run = subprocess.run(
        f'{" ".join(PENSTOCK)} sql "{query}" --csv --data {data} | head -n 1',
        capture_output=True,
        text=True,
        shell=True,
        timeout=120,
    )

    assert run.stdout.count("\n") == 1
    assert "Traceback" not in run.stderr
    assert "Error" not in run.stderr


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT a.range * b.range) FROM range(100000000) a, range(9) b",
        "SELECT max(range) FROM range(1000000000000) UNION ALL SELECT 1",
        "SELECT range FROM range(1000000000000) WHERE range < 9 OR range % 1e12 = 7",
    ],
    ids=["counts", "at once", "behind the first rows"],
)
def test_ctrl_c_ends_a_query(data: Path, query: str) -> None:
    command = [*PENSTOCK, "sql", query, "--csv", "--data", str(data)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        while cpu_s(run.pid) < 3:  # it has started in much less
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        try:
            _, said = run.communicate(timeout=60)
        finally:
            run.kill()

    assert run.returncode == 130
    assert said.splitlines()[-1] == b"interrupted"


def cpu_s(pid: int) -> float:
    """What a process has worked so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_neither_spark_nor_a_cache_is_touched(data: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from penstock.cli.main import cli\n"
        f"cli(['sql', {BY_USER!r}, '--data', {str(data)!r}], standalone_mode=False)\n"
        "print([name for name in sys.modules if name.startswith('pyspark')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )

    assert run.stdout.splitlines()[-1] == "[]", run.stderr
    assert not (tmp_path / "cache").exists()


def test_a_token_of_another_server_of_ours_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "left"
    left.mkdir()
    KeyFile(left).begin(0)
    monkeypatch.setenv("PENSTOCK_DATA", str(left))
    with serving(tmp_path, "--no-maze") as server:
        with connect(server.data) as client:
            client.publish("t", b"x")
        monkeypatch.setenv("PENSTOCK_SERVER", f"127.0.0.1:{server.ports['native']}")

        found = lines("SELECT count(*) AS n FROM t", "--json")

    assert found == ['{"n":1}']
