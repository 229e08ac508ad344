from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import connect
from penstock.errors import (
    DataLost,
    NotADataDirectory,
    ServerRefused,
    Unreachable,
)
from penstock.log import Batch, Columns, Log, TopicOptions
from penstock.table import place as places
from penstock.table.connection import BrokerAccess
from penstock.table.extent import Extent
from penstock.table.place import (
    DataDirectory,
    Place,
    RunningBroker,
    all_that_is_left,
    open_place,
)
from tests.local_server import LocalServer, local_server
from tests.unit.spark.scene import NEW_YEAR, append, connection, filled


@pytest.fixture(params=["files", "broker"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Topics t of 100 events, u of none and $own of 1."""
    filled(tmp_path, t=100, u=0, **{"$own": 1})
    if request.param == "files":
        with_files = DataDirectory(connection(tmp_path))
        yield with_files
        with_files.close()
        return
    with local_server(tmp_path):
        with_broker = RunningBroker(connection(tmp_path))
        yield with_broker
        with_broker.close()


def offsets(batches: Iterator[Batch]) -> list[int]:
    return [offset for batch in batches for offset in batch.offsets()]


def test_a_path_is_read_and_servers_are_asked(tmp_path: Path) -> None:
    filled(tmp_path)

    assert isinstance(open_place(connection(tmp_path)), DataDirectory)
    assert isinstance(
        open_place(BrokerAccess(servers=("h:1",), path=None)), RunningBroker
    )


def test_a_path_has_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(NotADataDirectory):
        open_place(connection(tmp_path / "nothing"))


def test_what_there_is(place: Place) -> None:
    extents = place.extents()

    assert set(extents) == {"t", "u"}
    assert (extents["t"].start, extents["t"].end) == (0, 100)
    assert extents["t"].bytes > 1000
    assert (extents["u"].start, extents["u"].end) == (0, 0)
    assert set(place.extents(["t", "$own", "none"])) == {"t", "$own"}


def test_topics_on_several_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number:04}" for number in range(1001)]
    filled(tmp_path, **dict.fromkeys(names, 0))

    with local_server(tmp_path):
        broker = RunningBroker(connection(tmp_path))
        assert list(broker.extents()) == names
        broker.close()


def test_where_a_time_is(place: Place) -> None:
    assert place.offset_at("t", NEW_YEAR + 40) == 40
    assert place.offset_at("t", 0) == 0
    assert place.offset_at("t", NEW_YEAR + 1000) == 100


def test_a_range_is_read(place: Place) -> None:
    assert offsets(place.batches("t", 7, 93)) == list(range(7, 93))
    assert offsets(place.batches("t", 7, 7)) == []


def test_a_range_is_read_piece_by_piece(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "READ_BYTES", 1)

    assert offsets(place.batches("t", 0, 100)) == list(range(100))


def test_what_is_behind_the_end_is_lost(place: Place) -> None:
    with pytest.raises(DataLost, match=r"topic t: offset 1\d\d is not there"):
        offsets(place.batches("t", 90, 101))
    with pytest.raises(DataLost, match="topic t: offset 101 is not there"):
        offsets(place.batches("t", 101, 102))


def test_a_topic_that_is_not_there_is_lost(place: Place) -> None:
    with pytest.raises(DataLost, match="topic none: it was deleted"):
        offsets(place.batches("none", 0, 1))


def test_what_is_left_of_a_range(place: Place) -> None:
    assert offsets(all_that_is_left(place, "t", 90, 500)) == list(range(90, 100))
    assert offsets(all_that_is_left(place, "t", 200, 500)) == []
    assert offsets(all_that_is_left(place, "none", 0, 5)) == []


def test_retention_in_the_middle_of_a_range_is_gone_around() -> None:
    class Shrinking(DataDirectory):
        def __init__(self) -> None:
            self.starts = [0, 5]

        def extents(self, names: object = None) -> dict[str, Extent]:
            return {"t": Extent(start=self.starts[0], end=10)}

        def batches(
            self, topic: str, start: int, end: int, *, whole: bool = True
        ) -> Iterator[Batch]:
            if self.starts.pop(0) == 0:
                raise DataLost("t", "gone")
            assert (start, end) == (5, 10)
            yield from ()

    assert offsets(all_that_is_left(Shrinking(), "t", 0, 10)) == []


def test_a_range_that_is_lost_for_good_is_an_error() -> None:
    class Stubborn(DataDirectory):
        def __init__(self) -> None:
            pass

        def extents(self, names: object = None) -> dict[str, Extent]:
            return {"t": Extent(start=0, end=10)}

        def batches(
            self, topic: str, start: int, end: int, *, whole: bool = True
        ) -> Iterator[Batch]:
            yield from ()
            raise DataLost("t", "gone")

    with pytest.raises(DataLost, match="gone"):
        offsets(all_that_is_left(Stubborn(), "t", 0, 10))


def damaged(directory: Path) -> Path:
    """Events one by one in a segment of which a few bytes are not what they were."""
    with Log.open(directory) as log:
        log.create_topic("t")
        for number in range(50):
            append(log, "t", 1, start=number)
            log.checkpoint()
    (segment,) = directory.rglob("*.seg")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4] = b"oops"
    segment.write_bytes(data)
    return directory


def test_what_is_damaged_is_an_error_or_is_gone_around(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "READ_BYTES", 1)
    files = DataDirectory(connection(damaged(tmp_path)))

    with pytest.raises(DataLost, match="topic t: damaged"):
        offsets(files.batches("t", 0, 50))

    left = offsets(all_that_is_left(files, "t", 0, 50))
    assert left == sorted(left)
    assert {0, 1, 48, 49} < set(left)
    assert 40 < len(left) < 50
    assert [one.__dict__.get("action") for one in caplog.records] == ["data_lost"]
    files.close()


def test_events_that_retention_took_are_lost(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        append(log, "t", 10)
        log.trim("t", 5)
        log.sync()
    files = DataDirectory(connection(tmp_path))

    with pytest.raises(
        DataLost, match="offset 3 is not there any more, it begins at 5"
    ):
        offsets(files.batches("t", 3, 10))
    assert offsets(all_that_is_left(files, "t", 3, 10)) == [5, 6, 7, 8, 9]
    files.close()


@pytest.mark.parametrize("kind", ["files", "broker"])
def test_what_compaction_took_is_no_loss(tmp_path: Path, kind: str) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t", TopicOptions(compact=True, segment_bytes=1024))
        for round_ in range(40):
            keys = [b"a", b"b" if round_ % 4 else b"c"]
            log.append("t", Columns([b"x" * 100] * 2, NEW_YEAR, keys=keys))
            log.sync()
        log.roll("t")
        log.append("t", Columns([b"", b""], NEW_YEAR, keys=[b"a", b"a"]))
        log.sync()
        log.compact("t")
    with local_server(tmp_path):
        place: Place = (DataDirectory if kind == "files" else RunningBroker)(
            connection(tmp_path)
        )

        everything = offsets(place.batches("t", 0, 82))
        one_by_one = [
            n for at in range(82) for n in offsets(place.batches("t", at, at + 1))
        ]

        assert len(everything) < 40
        assert one_by_one == everything
        place.close()


def test_damage_is_a_loss(tmp_path: Path) -> None:
    filled(tmp_path, t=50)
    (segment,) = (tmp_path / "topics").glob("*/*.seg")
    with segment.open("r+b") as file:
        file.seek(segment.stat().st_size // 2)
        file.write(b"junk")
    files = DataDirectory(connection(tmp_path))

    with pytest.raises(DataLost, match="topic t: damaged: "):
        offsets(files.batches("t", 0, 50))
    files.close()


def test_files_follow_their_writer(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        append(log, "t", 3)
        files = DataDirectory(connection(tmp_path))

        append(log, "t", 2, start=3)

        assert files.extents(["t"])["t"].end == 5
        assert offsets(files.batches("t", 0, 5)) == [0, 1, 2, 3, 4]
        files.close()


def test_files_ask_their_broker_if_it_runs(tmp_path: Path) -> None:
    filled(tmp_path, t=3)
    files = DataDirectory(connection(tmp_path))

    with pytest.raises(Unreachable, match="nothing listens there"):
        files.ask("topics")
    with local_server(tmp_path):
        assert files.ask("topics.show", name="t")["end_offset"] == 3
        files.close()


def test_a_broker_that_is_away_is_waited_for_and_given_up(tmp_path: Path) -> None:
    broker = RunningBroker(
        BrokerAccess(servers=("127.0.0.1:1",), path=None, retry_s=0.05)
    )

    with pytest.raises(Unreachable) as caught:
        broker.extents()

    assert str(caught.value) == (
        "no broker at 127.0.0.1:1 for 0.05 s (option retrySeconds): "
        "no server for 127.0.0.1:1: nothing listens there"
    )
    with pytest.raises(Unreachable):
        offsets(broker.batches("t", 0, 1))


def test_a_broker_that_comes_back_goes_on(tmp_path: Path) -> None:
    filled(tmp_path, t=100)
    server = LocalServer(tmp_path)
    broker = RunningBroker(connection(tmp_path))
    try:
        parts = broker.batches("t", 0, 100)
        assert broker.extents(["t"])["t"].end == 100

        server.stop()
        (tmp_path / "penstock.sock").unlink()
        server = LocalServer(tmp_path)

        assert offsets(parts) == list(range(100))
        assert broker.extents(["t"])["t"].end == 100
    finally:
        broker.close()
        server.stop()


def test_what_a_server_refuses_is_said(tmp_path: Path) -> None:
    filled(tmp_path, t=1)

    with local_server(tmp_path, {"me": "secret"}):
        broker = RunningBroker(connection(tmp_path, user="me", password="wrong"))
        with pytest.raises(ServerRefused, match="login refused"):
            broker.extents()
        right = RunningBroker(connection(tmp_path, user="me", password="secret"))
        assert right.extents(["t"])["t"].end == 1
        with pytest.raises(ServerRefused, match="topics.shwo"):
            right.ask("topics.shwo")
        right.close()


def test_the_first_server_that_answers_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, t=1)
    asked = []

    def dial(address: object, **said: object) -> object:
        asked.append(str(address))
        return connect(tmp_path) if len(asked) == 2 else connect("127.0.0.1:1")

    monkeypatch.setattr(places, "connect", dial)
    with local_server(tmp_path):
        broker = RunningBroker(
            BrokerAccess(servers=("127.0.0.1:1", "127.0.0.1:2"), path=None)
        )

        assert broker.extents(["t"])["t"].end == 1
        assert asked == ["127.0.0.1:1", "127.0.0.1:2"]
        broker.close()
