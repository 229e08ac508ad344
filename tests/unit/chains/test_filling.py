from __future__ import annotations

import pytest

from penstock.chains import filling
from penstock.chains.chains import STEP_EFFORT
from penstock.chains.filling import SLICE_EVENTS
from penstock.log import Batch, Columns, frame_of
from tests.unit.chains.scene import Scene


def rows(scene: Scene) -> dict[str, int]:
    return {table: scene.store.count(table) for table in ("ids", "parents", "batches")}


def test_events_without_id_and_parent_cost_a_row_a_batch(scene: Scene) -> None:
    scene.publish("a", 100)
    scene.publish("a", 100)

    scene.fill()

    assert rows(scene) == {"ids": 0, "parents": 0, "batches": 2}


def test_ids_and_parents_have_rows_of_their_own(scene: Scene) -> None:
    scene.publish("a", 3, ids=["x", "y", "x"], parents=["p", None, "p"])

    scene.fill()

    assert rows(scene) == {"ids": 3, "parents": 2, "batches": 1}


def test_one_step_handles_a_bounded_number_of_events(scene: Scene) -> None:
    scene.publish("a", 20_000, parents=["p"] * 20_000)

    assert scene.chains.step()

    assert 0 < scene.store.count("parents") <= STEP_EFFORT // 8 + SLICE_EVENTS
    steps = scene.fill()
    assert scene.store.count("parents") == 20_000
    assert steps >= 10


def test_a_step_reads_a_bounded_number_of_batches(scene: Scene) -> None:
    scene.publish("a")
    for _ in range(2000):
        scene.log.append("a", _small())
        scene.log.commit(sync=False)

    assert scene.chains.step()

    assert scene.store.count("batches") < 1300


def _small() -> Batch:
    return Batch.of("a", frame_of(Columns([b"x"], 5), 0, bytes(16)))


def test_topics_take_turns(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "READ_BYTES", 1)
    for topic in ("a", "b"):
        for _ in range(3):
            scene.publish(topic)
    scene.chains._fill(1)

    scene.chains._fill(1)

    assert [run.next for run in scene.filler.runs.values()] == [1, 1]


def test_nothing_to_do_costs_nothing(scene: Scene) -> None:
    scene.publish("a")
    scene.fill()

    assert scene.filler.step(1000) == 0
    assert scene.filler.behind == 0


def test_penstocks_own_topics_are_left_out(scene: Scene) -> None:
    scene.publish("$own", ids=["x"])
    scene.publish("a")

    scene.fill()

    assert scene.store.count("ids") == 0


def test_what_is_behind_is_counted(scene: Scene) -> None:
    scene.publish("a", 5)
    scene.fill()
    scene.publish("a", 7)
    scene.publish("b", 2)

    assert scene.chains.behind == 9


def test_a_restart_goes_on_where_it_was(scene: Scene) -> None:
    scene.publish("a", 5, parents=["p"] * 5)
    scene.fill()
    scene.close()
    scene.open()
    scene.publish("a", 1, parents=["p"])

    scene.fill()

    (run,) = scene.store.runs()
    assert (run.number, run.next, run.rows) == (1, 6, 8)


@pytest.mark.parametrize("regrown", [1, 3, 8])
def test_a_truncated_topic_is_indexed_anew(scene: Scene, regrown: int) -> None:
    scene.publish("a", 5, ids=["old"] * 5)
    scene.fill()
    scene.log.truncate("a", 2)
    scene.publish("a", regrown, ids=["new"] * regrown)

    scene.fill()

    assert len(scene.ask("new")) == regrown
    assert len(scene.ask("old")) == 2
    assert [run.number for run in scene.store.runs()] == [2]


@pytest.mark.slow
def test_a_topic_truncated_while_it_is_indexed_is_looked_at_again(
    scene: Scene,
) -> None:
    scene.publish("a", 3000, ids=["old"] * 3000)
    scene.chains.step()
    scene.log.truncate("a", 1000)
    scene.publish("a", 2000, ids=["new"] * 2000)

    assert len(scene.ask("new", limit=9999)) == 2000
    assert len(scene.ask("old", limit=9999)) == 1000


def test_damage_to_the_end_does_not_stop_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.publish("a", 5)
    topic = scene.log.topic("a")
    monkeypatch.setattr(type(topic), "read", lambda self, offset, size: [])

    scene.fill()

    assert scene.chains.behind == 0


@pytest.mark.slow
def test_a_compacted_topic_does_not_fill_the_index(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "RENEW_ROWS", 20)
    scene.topic("a", compact=True)
    for _ in range(60):
        scene.publish("a", 5, ids=["x"] * 5, keys=[b"k"] * 5)
        scene.fill()
        scene.log.compact("a")

    assert sum(rows(scene).values()) < 150
    (found,) = scene.ask("x")
    assert found == "a:299"


def test_rows_of_trimmed_and_deleted_topics_go_in_passing(scene: Scene) -> None:
    scene.publish("a", 500, parents=["p"] * 500)
    scene.publish("gone", 500, parents=["p"] * 500)
    scene.fill()
    scene.log.trim("a", 490)
    scene.log.delete_topic("gone")

    for _ in range(12):
        scene.publish("b", 1000, parents=["q"] * 1000)
        scene.fill()

    assert scene.store.count("parents") == 12_010
    assert len(scene.store.runs()) == 2
