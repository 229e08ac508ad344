"""Real parts without Spark; tests/process/test_up.py has the rest."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from penstock.errors import OtherStore, PartFailed
from penstock.server import users_file
from penstock.supervisor import plan
from penstock.supervisor import run as module
from penstock.supervisor.alone import alone
from penstock.supervisor.figures import Row
from penstock.supervisor.part import Places
from penstock.supervisor.plan import Ports, Wanted
from penstock.supervisor.process import State
from penstock.supervisor.run import Up
from tests.wire_client import Wire

FREE = Ports(line=0, native=0, control=0, http=0, tweets=0)
SERVE = ("--no-json", "--no-maze", "--no-mqtt")
NO_SPARK = (
    "[Command] missing: Spark: penstock up runs with --no-spark, "
    "tweets come to firehose only"
)
# A machine that does much else looks seldom.
# In the heading; directories of these tests have the word in their names.
RESTING = "resting: twitter"
LATE_S = 10.0


class Kept:
    """A display for a test: all rows that it was given."""

    def __init__(self) -> None:
        self.rows: list[Sequence[Row]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
        self.rows.append(rows)


def wanted(**changed: object) -> Wanted:
    values = {"rate": 300.0, "seed": 1, "spark": False, "ports": FREE, "serve": SERVE}
    return Wanted(**{**values, **changed})  # type: ignore[arg-type]


def test_a_run_ends_with_books_that_agree(tmp_path: Path) -> None:
    display = Kept()

    outcome = Up(wanted(), Places(tmp_path / "data"), display).run(1.0)

    assert outcome.good, outcome
    assert {one.what: one.right for one in outcome.accounts}["tweets in firehose"]
    assert [row.name for row in outcome.rows] == [
        "broker",
        "source",
        "ingest",
        "subscriber firehose",
    ]
    assert any(row.state is State.READY for rows in display.rows for row in rows)
    # The time counts from when every part is ready.
    assert outcome.times.starting_s > 0
    assert 1.0 <= outcome.times.working_s < 1.0 + LATE_S


def test_a_source_that_ends_ends_the_run(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")

    outcome = Up(wanted(count=200, rate=0.0), places, Kept()).run(None)

    assert outcome.good, outcome
    assert {row.name: row.events for row in outcome.rows}["ingest"] == 400


def test_a_resting_stream_begins_when_somebody_says_twitter(tmp_path: Path) -> None:
    """Over the control port; and who has left stops showing, not the stream."""
    places = Places(tmp_path / "data")

    class Person(Kept):
        said: list[str] = []
        sent_before: object = None

        def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
            if RESTING not in heading or self.said:
                return
            states = {row.name: row.state for row in rows}
            assert states["ingest"] is State.WAITING
            assert states["source"] is State.READY
            self.sent_before = {row.name: row.events for row in rows}["source"]
            ports = json.loads(places.ready("broker").read_bytes())["ports"]
            with Wire(ports["control"]) as wire:
                wire.say("twitter", "twitter")
                self.said = wire.lines(5)

    person = Person()
    outcome = Up(wanted(count=200, rate=0.0, resting=True), places, person).run(None)

    assert person.said == [
        "Type `twitter` to start processing SSE (from Twitter API)",
        "[Command] run :twitter",
        "[Command] the stream rested: it begins now",
        NO_SPARK,
        "[Command] already running :twitter",
    ]
    assert not person.sent_before
    assert outcome.good, outcome
    assert {row.name: row.events for row in outcome.rows}["ingest"] == 400


def test_a_run_that_rests_can_be_ended(tmp_path: Path) -> None:
    up = Up(wanted(resting=True), Places(tmp_path / "data"), Kept())

    class Impatient(Kept):
        def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
            if RESTING in heading:
                up.stop()

    up._display = Impatient()
    outcome = up.run(1.0)

    assert outcome.interrupted
    (note,) = outcome.notes
    assert note.startswith("ended while resting: twitter at port ")
    assert {row.name: row.events for row in outcome.rows}["ingest"] in (0, None)


def test_a_part_that_cannot_start_ends_everything(tmp_path: Path) -> None:
    bad = wanted(serve=(*SERVE, "--config", "nowhere.toml"))

    with pytest.raises(PartFailed, match=r"broker .*nowhere\.toml"):
        Up(bad, Places(tmp_path / "data"), Kept()).run(1.0)


def test_one_runs_in_a_directory_at_a_time(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    places.make()

    with alone(places), pytest.raises(PartFailed, match="another one runs"):
        Up(wanted(), places, Kept()).run(1.0)


@pytest.mark.slow
def test_a_part_that_is_killed_comes_back_where_it_was(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    ports = []

    class Killer(Kept):
        def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
            told = places.ready("broker")
            if len(rows) == 4 and rows[0].state is State.READY and told.exists():
                found = json.loads(told.read_bytes())
                ports.append(found["ports"])
                if len(ports) == 1:
                    os.kill(found["pid"], signal.SIGKILL)

    outcome = Up(wanted(count=500), places, Killer()).run(None)

    assert outcome.good, outcome
    assert outcome.rows[0].restarts == 1
    assert len(ports) > 1 and ports[0] == ports[-1]
    assert {row.name: row.events for row in outcome.rows}["ingest"] == 1000


def test_a_signal_ends_it_and_nothing_is_compared(tmp_path: Path) -> None:
    up = Up(wanted(), Places(tmp_path / "data"), Kept())

    class Impatient(Kept):
        def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
            up.stop()

    up._display = Impatient()
    outcome = up.run(60.0)

    assert outcome.interrupted and not outcome.good
    assert outcome.times.total_s < 60


@pytest.mark.slow
def test_a_message_that_is_lost_behind_the_source_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DRAIN_S", 6.0)
    real = plan.other_parts

    def through_proxy(*given: Any, tweets: str, **more: Any) -> Any:
        proxy.source = tweets
        return real(*given, tweets=proxy.url, **more)

    monkeypatch.setattr(module, "other_parts", through_proxy)
    with lossy_proxy() as proxy:
        outcome = Up(wanted(rate=2000.0), Places(tmp_path / "data"), Kept()).run(1.0)

    assert not outcome.good
    [wrong] = [one for one in outcome.accounts if not one.right]
    assert wrong.what == "messages received of those sent"
    assert wrong.found < wrong.wanted


class Proxy(ThreadingHTTPServer):
    """Gives the beginning of a stream, and says then that this is all."""

    source = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Cutting(BaseHTTPRequestHandler):
    server: Proxy

    def do_GET(self) -> None:
        if self.headers.get("Last-Event-ID"):
            self.send_response(204)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with urllib.request.urlopen(self.server.source + self.path) as sent:
            for line in sent:
                if line == b"id: 100\n":
                    return
                self.wfile.write(line)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def lossy_proxy() -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", 0), Cutting) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


@pytest.mark.slow
def test_what_was_under_way_when_the_time_is_over_arrives(tmp_path: Path) -> None:
    """The ingest is killed with what the source has sent to it."""
    places = Places(tmp_path / "data")
    up = Up(wanted(rate=1000.0), places, Kept())
    make_no_more = up._make_no_more

    def killed() -> None:
        os.kill(json.loads(places.ready("ingest").read_bytes())["pid"], signal.SIGKILL)
        make_no_more()

    up._make_no_more = killed  # type: ignore[method-assign]
    outcome = up.run(1.0)

    assert outcome.good, outcome
    assert {row.name: row.restarts for row in outcome.rows}["ingest"] == 1


@pytest.mark.slow
def test_a_second_run_is_judged_by_what_it_did_itself(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    Up(wanted(), places, Kept()).run(1.0)

    second = Up(wanted(), places, Kept()).run(1.0)

    assert second.good, second
    for row in second.rows:
        assert row.events is not None and row.new is not None
        assert 0 < row.new < row.events or row.name == "source"


@pytest.mark.slow
def test_ctrl_c_ends_the_waiting_for_a_store(tmp_path: Path) -> None:
    nowhere = "postgresql://me:secret@no.such.host.invalid/db"
    up = Up(wanted(spark=True, store=nowhere), Places(tmp_path / "data"), Kept())
    headings: list[str] = []

    class Impatient(Kept):
        def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
            headings.append(heading)
            if "waiting for the store" in heading:
                os.kill(os.getpid(), signal.SIGINT)

    up._display = Impatient()
    began_s = time.monotonic()
    outcome = up.run(60.0)

    assert outcome.interrupted
    assert outcome.notes == [
        "ended while waiting for the store postgresql://no.such.host.invalid/db"
    ]
    assert "secret" not in "".join(headings)
    assert time.monotonic() - began_s < module.GRACE_S


def test_another_store_than_before_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    places = Places(tmp_path / "data")
    places.make()
    places.which_store.write_text('{"store": "mongodb://h/a"}')
    display = Kept()

    with pytest.raises(OtherStore):
        Up(wanted(spark=True), places, display).run(1.0)

    assert display.rows == []


@pytest.mark.slow
def test_a_broker_with_users_is_worked_with(tmp_path: Path) -> None:
    users, file = tmp_path / "users", tmp_path / "password"
    users_file.set_password(users, "up", "secret")
    file.write_text("secret\n")
    serve = (*SERVE, "--users-file", str(users))

    outcome = Up(
        *(wanted(login=("up", str(file)), serve=serve), Places(tmp_path / "data")),
        Kept(),
    ).run(1.0)

    assert outcome.good, outcome


def test_a_link_that_logs_in_is_for_terminals_only(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    login = "http://127.0.0.1:8420/#token=pk_secret"

    told = Up(wanted(), places, Kept())._way_in(login)
    shown = Up(wanted(), places, Kept(), show_login=True)._way_in(login)

    assert shown == login
    assert "pk_" not in told
    assert told.startswith("http://127.0.0.1:8420/ (penstock token show --link --data ")
