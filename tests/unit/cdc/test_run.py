"""A capture that is a list: it can be read again from any place, as a database can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cdc import run
from penstock.cdc.change import NOTHING, Change, ChangePayload, ChangeSource, Op
from penstock.cdc.run import Pump
from penstock.client import connect
from penstock.client.feed import Feed
from penstock.errors import FeedMoved, StoreUnreachable
from tests.local_server import LocalServer, local_server


class Listed:
    """``away``: places in front of which the source is not there, once each."""

    def __init__(self, *ops: Op, away: set[int] | None = None) -> None:
        self.lag: int | None = 0
        self.forgotten = 0
        self.begun: list[str] = []
        self._ops = ops
        self._at = 0
        self._away = away or set()

    def forget(self) -> None:
        self.begun.append("anew")

    def begin(self, place: str) -> None:
        self.begun.append(place)
        self._at = int(place or 0)

    def take(self, most: int, wait_s: float) -> list[Change]:
        if self._at in self._away:
            self._away.discard(self._at)
            raise StoreUnreachable("here", 0, "gone for a moment")
        found = [self._change(at) for at in range(self._at, len(self._ops))][:most]
        self._at += len(found)
        return found

    def place(self) -> str:
        return str(self._at)

    def stored(self) -> None:
        self.forgotten = self._at

    def close(self) -> None: ...

    def _change(self, at: int) -> Change:
        source = ChangeSource("mongodb", "db", "t", str(at), None)
        return Change(
            str(at), ChangePayload(self._ops[at], str(at), NOTHING, NOTHING, source)
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FIRST_PAUSE_S", 0.001)


def feed(server: LocalServer) -> Feed:
    return Feed(server.data, "cdc:a", gateway="cdc")


def ids(server: LocalServer) -> list[str]:
    with connect(server.data) as client:
        batches = client.fetch("t", 0, 1000).batches
        return [one for batch in batches for one in batch.ids()]


def test_changes_are_stored_with_their_place(server: LocalServer) -> None:
    capture = Listed("insert", "update", "insert")
    with feed(server) as line:
        pump = Pump(capture, line)
        pump.begin()
        assert pump.step() == 3

        kept = json.loads(line.note)

    assert kept == {"place": "3", "events": 3, "inserts": {"t": 2}}
    assert capture.forgotten == 3
    assert ids(server) == ["0", "1", "2"]


def test_the_first_place_is_kept_before_anything_changes(server: LocalServer) -> None:
    with feed(server) as line:
        Pump(Listed(), line).begin()

        assert json.loads(line.note)["place"] == "0"


def test_another_process_goes_on(server: LocalServer) -> None:
    with feed(server) as line:
        first = Pump(Listed("insert"), line)
        first.begin()
        first.step()
    capture = Listed("insert", "insert")
    with feed(server) as line:
        second = Pump(capture, line)
        second.begin()
        second.step()

    assert capture.begun == ["1"]
    assert (second.events, second.inserts["t"]) == (2, 2)
    assert ids(server) == ["0", "1"]


def test_one_may_forget_where_it_was(server: LocalServer) -> None:
    with feed(server) as line:
        Pump(Listed("insert"), line).begin()
        capture = Listed()
        Pump(capture, line, from_now=True).begin()

    assert capture.begun == ["anew", ""]


def test_whoever_is_to_stop_waits_no_longer(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "FIRST_PAUSE_S", 3600.0)
    stopping: list[bool] = []

    class Away(Listed):
        def begin(self, place: str) -> None:
            stopping.append(True)
            raise StoreUnreachable("here", 0, "gone for good")

    with feed(server) as line:
        pump = Pump(Away(), line)

        assert not pump.begin_patiently(lambda: bool(stopping))

    assert (pump.errors, len(stopping)) == (1, 1)


def test_a_source_that_is_away_is_waited_for(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BATCH", 1)
    capture = Listed("insert", "insert", "insert", away={0, 2})
    with feed(server) as line:
        pump = Pump(capture, line)
        pump.begin_patiently(lambda: False)
        pump.run(lambda: pump.events == 3)

    assert ids(server) == ["0", "1", "2"]
    assert pump.errors == 2
    assert capture.begun == ["", "0", "2"]


def test_a_silent_source_has_its_place_kept_now_and_then(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = Listed()
    with feed(server) as line:
        pump = Pump(capture, line)
        pump.begin()
        capture._at = 7  # something happened that is of no interest
        pump.step()
        assert json.loads(line.note)["place"] == "0"

        monkeypatch.setattr(run, "IDLE_S", 0.0)
        pump.step()

        assert json.loads(line.note)["place"] == "7"


def test_a_second_writer_is_noticed(server: LocalServer) -> None:
    with feed(server) as one, feed(server) as other:
        first = Pump(Listed("insert"), one)
        second = Pump(Listed("insert", "insert"), other)
        first.begin()
        second.begin()
        first.step()

        with pytest.raises(FeedMoved):
            second.step()

    assert ids(server) == ["0"]


class Read:
    """A snapshot that is a list as well: rows, behind which a capture begins at 0."""

    def __init__(self, count: int, away: set[int] | None = None) -> None:
        self.is_done = False
        self.begun: list[tuple[str, str]] = []
        self.closed = 0
        self._count = count
        self._away = away or set()
        self._at = 0

    def begin(self, place: str, frontier: str) -> None:
        self.begun.append((place, frontier))
        self._at = int(frontier or 0)

    def take(self, most: int, wait_s: float) -> list[Change]:
        if self._at in self._away:
            self._away.discard(self._at)
            raise StoreUnreachable("here", 0, "gone for a moment")
        if self._at == self._count:
            self.is_done = True
            return []
        self._at += 1
        source = ChangeSource("mongodb", "db", "t", "", None)
        body = ChangePayload("read", str(self._at), NOTHING, NOTHING, source)
        return [Change(f"r{self._at}", body)]

    def place(self) -> str:
        return "0"

    def frontier(self) -> str:
        return str(self._at)

    def close(self) -> None:
        self.closed += 1


def test_a_new_feed_may_begin_with_what_is_there(server: LocalServer) -> None:
    snapshot, capture = Read(2), Listed("insert", "update")
    with feed(server) as line:
        pump = Pump(capture, line, snapshot=lambda: snapshot, anew=True)
        pump.begin()
        first = json.loads(line.note)
        assert pump.reads and pump.lag is None
        while pump.events < 4:
            pump.step()

        last = json.loads(line.note)

    assert first == {"place": "0", "events": 0, "inserts": {}, "frontier": "0"}
    assert last == {"place": "2", "events": 4, "inserts": {"t": 1}}
    assert ids(server) == ["r1", "r2", "0", "1"]
    assert (capture.begun, snapshot.closed, pump.reads) == (["0"], 1, False)


def test_a_snapshot_that_was_cut_off_goes_on_whether_or_not_it_is_asked_for(
    server: LocalServer,
) -> None:
    with feed(server) as line:
        first = Pump(Listed(), line, snapshot=lambda: Read(3), anew=True)
        first.begin()
        first.step()
    snapshot = Read(3)
    with feed(server) as line:
        second = Pump(Listed("insert"), line, snapshot=lambda: snapshot)
        second.begin()
        while second.events < 4:
            second.step()

    assert snapshot.begun == [("0", "1")]
    assert ids(server) == ["r1", "r2", "r3", "0"]


def test_a_feed_that_has_begun_has_no_snapshot_any_more(server: LocalServer) -> None:
    snapshot = Read(3)
    with feed(server) as line:
        Pump(Listed(), line).begin()
    with feed(server) as line:
        pump = Pump(Listed("insert"), line, snapshot=lambda: snapshot, anew=True)
        pump.begin()
        pump.step()

    assert (snapshot.begun, ids(server)) == ([], ["0"])


def test_one_that_forgets_where_it_was_may_read_everything_again(
    server: LocalServer,
) -> None:
    with feed(server) as line:
        Pump(Listed(), line).begin()
        snapshot, capture = Read(3), Listed()
        pump = Pump(
            *(capture, line), from_now=True, snapshot=lambda: snapshot, anew=True
        )
        pump.begin()

    assert (capture.begun, snapshot.begun) == (["anew"], [("", "")])


def test_a_source_that_is_away_is_waited_for_by_a_snapshot(server: LocalServer) -> None:
    snapshot = Read(3, away={0, 2})
    with feed(server) as line:
        pump = Pump(Listed("insert"), line, snapshot=lambda: snapshot, anew=True)
        pump.begin_patiently(lambda: False)
        pump.run(lambda: pump.events == 4)
        pump.close()

    assert snapshot.begun == [("", ""), ("0", "0"), ("0", "2")]
    assert ids(server) == ["r1", "r2", "r3", "0"]
