from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log import damage as damages
from penstock.log.damage import Cut, Damage, DamageRegister
from penstock.log.layout import Layout
from tests.unit.log.faults import FaultyFiles
from tests.unit.log.scenes import actions

DAMAGE = Damage(file="journal/1.jnl", position=3, length=4, reason="bad")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "1.jnl").write_bytes(b"0123456789")
    return Layout(str(tmp_path))


def test_cut_says_file_position_and_bytes() -> None:
    cut = Cut(file="journal/1.jnl", position=64, length=10, reason="torn tail")

    assert str(cut) == "journal/1.jnl: cut 10 bytes at 64: torn tail"


@pytest.mark.parametrize(
    ("end", "text"),
    [(9, "(topic t, offsets 5..8)"), (None, "(topic t, offsets 5..?)")],
)
def test_damage_of_a_topic_says_the_offsets(end: int | None, text: str) -> None:
    damage = Damage(
        file="f",
        position=1,
        length=2,
        reason="bad",
        topic="t",
        first_offset=5,
        end_offset=end,
    )

    assert str(damage) == f"f: 2 bytes at 1: bad {text}"


def test_damage_of_no_topic_says_the_place() -> None:
    assert str(DAMAGE) == "journal/1.jnl: 4 bytes at 3: bad"


def test_damaged_bytes_are_kept_aside_with_a_report(
    layout: Layout, caplog: pytest.LogCaptureFixture
) -> None:
    register = DamageRegister(Files(), layout)

    added = register.add(DAMAGE)

    base = Path(layout.quarantine) / "journal_1.jnl@3"
    assert added
    assert base.with_name(base.name + ".bin").read_bytes() == b"3456"
    report = json.loads(base.with_name(base.name + ".json").read_text())
    assert (report["file"], report["position"]) == ("journal/1.jnl", 3)
    assert (report["length"], report["reason"]) == (4, "bad")
    assert actions(caplog) == ["range_quarantined"]


def test_known_damage_is_not_reported_again(
    layout: Layout, caplog: pytest.LogCaptureFixture
) -> None:
    register = DamageRegister(Files(), layout)
    register.add(DAMAGE)
    caplog.clear()

    added = register.add(DAMAGE)

    assert (added, actions(caplog)) == (False, [])
    assert (len(register), list(register)) == (1, [DAMAGE])


def test_copy_of_an_earlier_run_is_not_written_over(layout: Layout) -> None:
    DamageRegister(Files(), layout).add(DAMAGE)
    (Path(layout.directory) / "journal" / "1.jnl").write_bytes(b"changed since")

    DamageRegister(Files(), layout).add(DAMAGE)

    copy = Path(layout.quarantine) / "journal_1.jnl@3.bin"
    assert copy.read_bytes() == b"3456"


def test_large_range_is_kept_by_its_first_bytes(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damages, "MAX_QUARANTINED_BYTES", 2)

    DamageRegister(Files(), layout).add(DAMAGE)

    copy = Path(layout.quarantine) / "journal_1.jnl@3.bin"
    assert copy.read_bytes() == b"34"


@pytest.mark.parametrize("file", ["journal/gone.jnl", "journal"])
def test_damage_without_bytes_of_its_own_is_reported_all_the_same(
    layout: Layout, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    damage = Damage(file=file, position=0, length=0, reason="lost")

    DamageRegister(Files(), layout).add(damage)

    names = [path.name for path in Path(layout.quarantine).iterdir()]
    assert file.replace("/", "_") + "@0.json" in names
    assert actions(caplog) == ["range_quarantined"]


@pytest.mark.parametrize("call", ["make_directory", "create", "write", "rename"])
def test_copy_that_cannot_be_made_is_reported_and_changes_nothing_else(
    layout: Layout, call: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyFiles()
    disk.fail(call, "/quarantine")
    register = DamageRegister(disk, layout)

    added = register.add(DAMAGE)

    assert added
    assert actions(caplog) == ["range_quarantined", "quarantine_failed"]
    assert caplog.records[-1].levelno == logging.ERROR
