from __future__ import annotations

from pathlib import Path

import pytest

from penstock.chains import ChainQuestion
from penstock.chains import chains as chains_module
from penstock.chains import store as store_module
from penstock.chains.chains import PAUSE_STEPS
from penstock.errors import DiskFull, WriteFailed
from penstock.testing import CrashDisk
from tests.unit.chains.scene import Scene


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [getattr(record, "action", "") for record in caplog.records]


def damage(scene: Scene) -> None:
    """Overwrite what the index has on disk, behind its back."""
    scene.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    scene.store._db.execute("PRAGMA cache_size = 0")
    path = scene.folder / "chains.sqlite"
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


def test_nothing_is_opened_before_it_is_needed(scene: Scene) -> None:
    scene.publish("a")

    assert not (scene.folder / "chains.sqlite").exists()
    assert scene.chains.behind == 0


def test_a_log_in_memory_has_its_index_there(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "none", files=CrashDisk())
    scene.publish("a", ids=["x"])

    assert scene.ask("x") == {"a:0": 0}
    assert not (tmp_path / "none").exists()
    scene.close()


@pytest.mark.slow
def test_a_damaged_index_is_made_anew_while_it_is_filled(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.publish("a", 5000, ids=["x"] * 5000)
    scene.fill()
    damage(scene)
    scene.publish("a", 5000, ids=["y"] * 5000)

    scene.fill()

    assert "chains_rebuilt" in actions(caplog)
    assert len(scene.ask("x", limit=9999)) == 5000
    assert len(scene.ask("y", limit=9999)) == 5000


@pytest.mark.slow
def test_a_damaged_index_is_made_anew_when_it_is_asked(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.publish("a", 5000, ids=["x"] * 5000)
    scene.fill()
    damage(scene)

    assert len(scene.ask("x", limit=9999)) == 5000
    assert "chains_rebuilt" in actions(caplog)


def test_a_question_under_way_is_over_when_the_index_is_made_anew(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains_module, "STEP_EFFORT", 1000)
    scene.publish("a", 5000, parents=["x"] * 5000)
    scene.publish("a", ids=["x"])
    scene.fill()
    number, walk = scene.chains.ask(ChainQuestion(id="x", limit=9999))
    assert not walk.done
    damage(scene)

    turns = 0
    while scene.chains.go_on(number) is not None:
        turns += 1

    assert turns < 20
    assert not walk.done


def test_a_full_disk_leaves_the_index_behind_and_says_so_once(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "penstock.chains")
    scene.publish("a", ids=["x"])
    scene.fill()
    scene.publish("a", ids=["y"])
    with monkeypatch.context() as full:
        full.setattr(store_module, "RESERVE_BYTES", 1 << 60)
        for _ in range(3 * PAUSE_STEPS):
            assert not scene.chains.step()
        assert scene.ask("x") == {"a:0": 0}
        assert scene.chains.behind == 1
    assert actions(caplog) == ["chains_behind"]

    for _ in range(PAUSE_STEPS + 1):
        scene.chains.step()

    assert actions(caplog) == ["chains_behind", "chains_resumed"]
    assert scene.ask("y") == {"a:1": 0}


@pytest.mark.slow
def test_a_write_that_fails_is_done_again_as_a_whole(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.publish("a", ids=["x"])
    scene.fill()
    (pages,) = scene.store._db.execute("PRAGMA page_count").fetchone()
    scene.store._db.execute(f"PRAGMA max_page_count = {pages}")
    scene.publish("a", 5000, ids=["y"] * 5000)
    scene.fill()
    assert actions(caplog) == ["chains_behind"]
    scene.store._db.execute("PRAGMA max_page_count = 1000000")

    assert len(scene.ask("y", limit=9999)) == 5000


def test_without_an_index_a_question_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "RESERVE_BYTES", 1 << 60)
    scene.publish("a", ids=["x"])

    with pytest.raises(DiskFull):
        scene.ask("x")

    monkeypatch.undo()
    assert scene.ask("x") == {"a:0": 0}


def test_an_index_that_is_broken_twice_is_an_error(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.publish("a", ids=["x"])

    def find(*_: object) -> None:
        raise store_module.Unusable("broken")

    monkeypatch.setattr(store_module.ChainIndex, "find", find)

    with pytest.raises(WriteFailed, match="broken"):
        scene.ask("x")


def test_a_log_that_cannot_be_read_leaves_the_index_behind(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scene.publish("a", ids=["x"])

    def read(*_: object) -> None:
        raise OSError(5, "cannot be read")

    with monkeypatch.context() as broken:
        broken.setattr(type(scene.log.topic("a")), "read", read)
        assert not scene.chains.step()
    assert actions(caplog) == ["chains_behind"]

    assert scene.ask("x") == {"a:0": 0}


def test_only_so_many_questions_are_under_way(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains_module, "MAX_WALKS", 2)
    monkeypatch.setattr(chains_module, "STEP_EFFORT", 1)
    scene.publish("a", ids=["x"])
    numbers = [scene.chains.ask(ChainQuestion(id="x"))[0] for _ in range(3)]

    alive = [scene.chains.go_on(number) is not None for number in numbers]

    assert alive == [False, True, True]


def test_a_closed_index_can_be_used_again(scene: Scene) -> None:
    scene.publish("a", ids=["x"])
    scene.fill()
    scene.chains.close()
    scene.publish("a", ids=["x"])

    assert scene.ask("x") == {"a:0": 0, "a:1": 0}


def test_the_topic_of_an_id_is_found_as_far_as_it_is_indexed(scene: Scene) -> None:
    scene.publish("a", ids=["x"])
    assert scene.chains.topic_of("x") is None  # nobody has indexed it yet
    while scene.chains.step():
        pass

    assert scene.chains.topic_of("x") == "a"
    assert scene.chains.topic_of("nobody") is None


def test_the_topic_of_an_id_is_unknown_where_the_index_is_of_no_use(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.publish("a", 5000, ids=["x"] * 5000)
    scene.fill()
    damage(scene)

    assert scene.chains.topic_of("x") is None
    assert "chains_rebuilt" in actions(caplog)
