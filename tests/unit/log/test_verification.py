"""A whole data directory: checkpoints, journal, topics, living and dead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.errors import NotADataDirectory
from penstock.files import Files
from penstock.log import Columns, Log, LogOptions, frame
from penstock.log import checkpoint as checkpoints
from penstock.log import verification as verify_module
from penstock.log.journal import group
from penstock.log.layout import Layout
from penstock.log.tally import Tally, VerifyResult
from penstock.log.verification import bytes_to_verify, quarantined, verify
from tests.unit.log.scenes import ends

SMALL = LogOptions(journal_file_bytes=4096, checkpoint_bytes=1 << 20)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_a_closed_log_is_intact(data: Path) -> None:
    with Log.open(data, SMALL) as log:
        fill(log)
        events = readable(log)

    result = verify(data)

    assert (result.damages, result.events) == ([], events)
    assert result.frames > 0


def test_an_empty_log_is_intact(data: Path) -> None:
    Log.open(data).close()

    result = verify(data)

    assert (result.damages, result.events) == ([], 0)


def test_a_living_log_is_intact_at_every_step(data: Path) -> None:
    with Log.open(data, SMALL) as log:
        steps = [
            lambda: fill(log),
            log.checkpoint,
            lambda: log.trim("a", 7),
            lambda: log.truncate("b", 5),
            lambda: log.roll("a"),
            lambda: fill(log),
            lambda: log.compact("a"),
            lambda: log.delete_topic("b"),
            lambda: fill(log),
            log.checkpoint,
            lambda: fill(log),
            lambda: log.trim("a", log.topic("a").end_offset - 1),
        ]
        for step in steps:
            step()

            result = verify(data)

            assert (result.damages, result.events) == ([], readable(log))


def test_unsynced_groups_of_a_living_log_do_not_count(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
        synced = readable(log)
        log.append("a", Columns([b"x"], 5))
        log.commit(sync=False)

        assert verify(data).events == synced


def test_nothing_changes(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
        log.checkpoint()
        fill(log)
        log.abandon()
    flip(newest(data, "topics/*/*.seg"), -20)
    before = contents(data)

    result = verify(data)

    assert len(result.damages) == 1
    assert contents(data) == before


def test_a_damaged_checkpoint_is_found_old_or_new(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
        log.checkpoint()
        fill(log)
    for path in data.glob("checkpoints/*"):
        flip(path, -1)

    damages = verify(data).damages

    files = {one.file for one in damages if one.file.endswith(".ckp")}
    assert files == {f"checkpoints/{path.name}" for path in data.glob("checkpoints/*")}


def test_a_damaged_group_that_was_synced_is_found(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
        log.abandon()
    journal = newest(data, "journal/*")
    flip(journal, ends(journal)[-1] // 2)

    reasons = {one.reason for one in verify(data).damages}

    assert "journal group fails its checksum" in reasons


def test_a_torn_tail_is_reported_until_a_start_cuts_it(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
        log.abandon()
    torn = newest(data, "journal/*")
    with torn.open("r+b") as journal:
        journal.seek(ends(torn)[-1])
        journal.write(b"half of a group.")

    (damage,) = verify(data).damages
    Log.open(data).close()

    assert damage.length == len(b"half of a group.")
    assert damage.reason.startswith("torn tail: never confirmed")
    assert verify(data).damages == []


def test_quarantined_damage_is_still_damage(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
        log.abandon()
    journal = newest(data, "journal/*")
    flip(journal, ends(journal)[-1] // 2)
    with Log.open(data) as log:
        log.checkpoint()
        log.checkpoint()
    known = quarantined(Files(), Layout(str(data)))

    damages = verify(data).damages

    assert known
    assert set(known) <= set(damages)


def test_a_quarantine_report_that_is_not_readable_is_damage(data: Path) -> None:
    Log.open(data).close()
    (data / "quarantine").mkdir()
    (data / "quarantine" / "x@1.json").write_text("{")

    (damage,) = verify(data).damages

    assert damage.file == "quarantine/x@1.json"


def test_damage_of_a_living_log_is_looked_at_twice(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
        log.checkpoint()
        path = newest(data, "topics/*/*.seg")
        flip(path, -20)

        assert len(verify(data).damages) == 1


def test_what_looked_damaged_only_once_is_not(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = verify_module._look

    def look_and_mend(*args) -> VerifyResult:
        result = look(*args)
        flip(path, -20)
        return result

    with Log.open(data) as log:
        fill(log)
        log.checkpoint()
        path = newest(data, "topics/*/*.seg")
        flip(path, -20)
        monkeypatch.setattr(verify_module, "_look", look_and_mend)

        result = verify(data)

        assert result.damages == []
        assert result.events == readable(log)


def test_a_file_that_goes_while_the_log_lives_means_another_look(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, spoilt = verify_module._look, iter([True, True, False])

    def spoilt_look(*args) -> VerifyResult:
        if next(spoilt):
            raise FileNotFoundError
        return look(*args)

    monkeypatch.setattr(verify_module, "_look", spoilt_look)
    with Log.open(data) as log:
        fill(log)

        assert verify(data).events == readable(log)


def test_a_file_that_goes_from_a_dead_log_is_an_error(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Log.open(data).close()

    def spoilt_look(*args) -> VerifyResult:
        raise FileNotFoundError

    monkeypatch.setattr(verify_module, "_look", spoilt_look)

    with pytest.raises(FileNotFoundError):
        verify(data)


def test_progress_hears_of_all_bytes(data: Path) -> None:
    with Log.open(data) as log:
        fill(log)
    heard: list[int] = []

    result = verify(data, heard.append)

    assert sum(heard) == result.bytes
    assert 0 < result.bytes <= bytes_to_verify(data)


def test_a_frame_that_is_bad_within_a_good_group_is_found(data: Path) -> None:
    with Log.open(data) as log:
        log.create_topic("a")
        log.append("a", Columns([b"x" * 50], 5))
        log.sync()
        log.abandon()
    journal = newest(data, "journal/*")
    content = bytearray(journal.read_bytes())
    content[content.index(b"xxxx")] ^= 1
    at = content.rindex(group.MAGIC)
    head = group.peek(content, at)
    assert head is not None
    crc = frame.checksum(content[at : at + head.length], ())
    content[at + 12 : at + 16] = crc.to_bytes(4, "little")
    journal.write_bytes(content)

    (damage,) = verify(data).damages

    assert damage.reason == "frame in a journal group fails its checksum"
    assert content[damage.position :].startswith(frame.MAGIC)


def test_files_that_go_while_they_are_counted_are_left_out(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Log.open(data).close()
    listed: list[tuple[str, list[str], list[str]]] = [(str(data), [], ["gone"])]
    monkeypatch.setattr(os, "walk", lambda _: listed)

    assert bytes_to_verify(data) == 0


def test_a_checkpoint_that_was_replaced_meanwhile_is_no_damage(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log.open(data) as log:
        fill(log)
        log.checkpoint()
        known = checkpoints.positions(Files(), Layout(str(data)))
        monkeypatch.setattr(checkpoints, "positions", lambda *_: [*known, 1 << 40])

        tally = Tally(lambda _: None)
        verify_module._look_at_checkpoints(Files(), Layout(str(data)), tally)

    assert tally.result().damages == []
    assert tally.result().files == len(known)


def test_a_writer_too_busy_to_look_at_is_an_error(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt_look(*args) -> VerifyResult:
        raise FileNotFoundError

    with Log.open(data):
        monkeypatch.setattr(verify_module, "_look", spoilt_look)

        with pytest.raises(FileNotFoundError):
            verify(data)


def test_another_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADataDirectory):
        verify(tmp_path)


def fill(log: Log) -> None:
    for name in ("a", "b"):
        if name not in log.topics():
            log.create_topic(name)
    for number in range(20):
        columns = Columns([b"x" * 50] * 2, 1000 + number, keys=[b"k", None])
        log.append_group({"a": columns, "b": Columns([b"y"], 1000)})
        log.sync()


def readable(log: Log) -> int:
    return sum(
        len(batch)
        for name in log.topics()
        for batch in log.read(name, log.topic(name).start_offset, 1 << 30)
    )


def newest(data: Path, pattern: str) -> Path:
    return sorted(data.glob(pattern))[-1]


def contents(data: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
