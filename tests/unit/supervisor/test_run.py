"""Real parts without Spark; tests/spark/test_up.py has the rest."""

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
from penstock.supervisor import plan, process
from penstock.supervisor import run as module
from penstock.supervisor.alone import alone
from penstock.supervisor.comparisons import Comparison
from penstock.supervisor.figures import StageCounts
from penstock.supervisor.part import Places
from penstock.supervisor.plan import PipelinePorts, PipelineRequest
from penstock.supervisor.process import PartState
from penstock.supervisor.run import Up
from tests.wire_client import Wire

FREE = PipelinePorts(line=0, native=0, control=0, http=0, tweets=0)
SERVE = ("--no-json", "--no-maze", "--no-mqtt")
NO_SPARK = (
    "[Command] missing: Spark: penstock up runs with --no-spark, "
    "tweets come to firehose only"
)
# In the heading; directories of these tests have the word in their names.
RESTING = "resting: twitter"
# A machine that does much else looks seldom.
LATE_S = 10.0
LOST = "messages received of those sent"


class Kept:
    """A display for a test: all rows that it was given."""

    def __init__(self) -> None:
        self.rows: list[Sequence[StageCounts]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None:
        self.rows.append(rows)


def wanted(**changed: object) -> PipelineRequest:
    values = {"rate": 300.0, "seed": 1, "spark": False, "ports": FREE, "serve": SERVE}
    return PipelineRequest(**{**values, **changed})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a run of days need not."""
    monkeypatch.setattr(module, "LOOK_S", 0.05)
    monkeypatch.setattr(module, "ASK_S", 0.2)
    monkeypatch.setattr(process, "FIRST_PAUSE_S", 0.05)


class Person(Kept):
    """Asks for the stream that rests, twice; then the broker is killed."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.said: list[str] = []
        self.sent_before: object = None
        self.ports: list[dict[str, int]] = []
        """Of the broker, each time that all parts are ready."""
        self._places = places

    def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None:
        super().show(rows, heading, now_s)
        if RESTING in heading and not self.said:
            self._ask(rows)
        elif self.said and all(row.state is PartState.READY for row in rows):
            found = self._broker()
            self.ports.append(found["ports"])
            if len(self.ports) == 1:
                os.kill(found["pid"], signal.SIGKILL)

    def _ask(self, rows: Sequence[StageCounts]) -> None:
        states = {row.name: row.state for row in rows}
        assert states["ingest"] is PartState.WAITING
        assert states["source"] is PartState.READY
        self.sent_before = {row.name: row.events for row in rows}["source"]
        with Wire(self._broker()["ports"]["control"]) as wire:
            wire.say("twitter", "twitter")
            self.said = wire.lines(5)

    def _broker(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._places.ready("broker").read_bytes())
        return told


@pytest.mark.slow
def test_two_runs_end_with_books_that_agree_whatever_is_killed(tmp_path: Path) -> None:
    """One until its source ends, and one for a time, over the data of the first."""
    places = Places(tmp_path / "data")
    person = Person(places)

    first = Up(wanted(count=500, resting=True), places, person).run(None)

    # Over the control port; and who has left stops showing, not the stream.
    assert person.said == [
        "Type `twitter` to start processing SSE (from Twitter API)",
        "[Command] run :twitter",
        "[Command] the stream rested: it begins now",
        NO_SPARK,
        "[Command] already running :twitter",
    ]
    assert not person.sent_before
    assert first.good, first
    assert {one.what: one.right for one in first.accounts}["tweets in firehose"]
    assert [row.name for row in first.rows] == [
        "broker",
        "source",
        "ingest",
        "subscriber firehose",
    ]
    assert {row.name: row.events for row in first.rows}["ingest"] == 1000
    # What was killed came back where it was.
    assert first.rows[0].restarts == 1
    assert len(person.ports) > 1 and person.ports[0] == person.ports[-1]

    users, file = tmp_path / "users", tmp_path / "password"
    users_file.set_password(users, "up", "secret")
    file.write_text("secret\n")
    serve = (*SERVE, "--users-file", str(users))
    login = ("up", str(file))
    up = Up(wanted(rate=1000.0, login=login, serve=serve), places, Kept())
    make_no_more = up._make_no_more

    def killed() -> None:
        os.kill(json.loads(places.ready("ingest").read_bytes())["pid"], signal.SIGKILL)
        make_no_more()

    up._make_no_more = killed  # type: ignore[method-assign]
    second = up.run(1.0)

    # What was under way to the ingest arrives; the run is judged by what it did itself.
    assert second.good, second
    assert {row.name: row.restarts for row in second.rows}["ingest"] == 1
    for row in second.rows:
        assert row.events is not None and row.new is not None
        assert 0 < row.new < row.events or row.name == "source"
    # The time counts from when every part is ready.
    assert second.times.starting_s > 0
    assert 1.0 <= second.times.working_s < 1.0 + LATE_S


@pytest.mark.slow
def test_a_run_that_rests_can_be_ended(tmp_path: Path) -> None:
    up = Up(wanted(resting=True), Places(tmp_path / "data"), Kept())

    class Impatient(Kept):
        def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None:
            if RESTING in heading:
                up.stop()

    up._display = Impatient()
    outcome = up.run(1.0)

    assert outcome.interrupted and not outcome.good
    (note,) = outcome.notes
    assert note.startswith("ended while resting: twitter at port ")
    assert {row.name: row.events for row in outcome.rows}["ingest"] in (0, None)


@pytest.mark.slow
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
def test_a_signal_ends_it_and_nothing_is_compared(tmp_path: Path) -> None:
    up = Up(wanted(), Places(tmp_path / "data"), Kept())

    class Impatient(Kept):
        def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None:
            up.stop()

    up._display = Impatient()
    outcome = up.run(60.0)

    assert outcome.interrupted and not outcome.good
    assert outcome.times.total_s < 60


@pytest.mark.slow
def test_a_message_that_is_lost_behind_the_source_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = plan.other_parts

    def through_proxy(*given: Any, tweets: str, **more: Any) -> Any:
        proxy.source = tweets
        return real(*given, tweets=proxy.url, **more)

    monkeypatch.setattr(module, "other_parts", through_proxy)
    up = Up(wanted(), Places(tmp_path / "data"), Kept())
    accounts = up._accounts

    def looked() -> list[Comparison]:
        """And waits no longer, once nothing else is to come."""
        found = accounts()
        if [one.what for one in found if not one.right] == [LOST]:
            monkeypatch.setattr(module, "DRAIN_S", 0.0)
        return found

    up._accounts = looked  # type: ignore[method-assign]
    with lossy_proxy() as proxy:
        outcome = up.run(1.0)

    assert not outcome.good
    [wrong] = [one for one in outcome.accounts if not one.right]
    assert wrong.what == LOST
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
                if line == b"id: 20\n":
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
def test_ctrl_c_ends_the_waiting_for_a_store(tmp_path: Path) -> None:
    nowhere = "postgresql://me:secret@no.such.host.invalid/db"
    up = Up(wanted(spark=True, store=nowhere), Places(tmp_path / "data"), Kept())
    headings: list[str] = []

    class Impatient(Kept):
        def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None:
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


def test_a_link_that_logs_in_is_for_terminals_only(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    login = "http://127.0.0.1:8420/#token=pk_secret"

    told = Up(wanted(), places, Kept())._way_in(login)
    shown = Up(wanted(), places, Kept(), show_login=True)._way_in(login)

    assert shown == login
    assert "pk_" not in told
    assert told.startswith("http://127.0.0.1:8420/ (penstock token show --link --data ")
