from __future__ import annotations

import pytest

from penstock.chains import finding, keys
from penstock.chains.finding import Finder, Meter
from tests.unit.chains.scene import Scene


def finder(scene: Scene) -> Finder:
    scene.fill()
    meter = Meter()
    return Finder(scene.log, scene.store, scene.filler, meter)


def with_id(found: Finder, text: str) -> list[str]:
    return [
        f"{hit.topic.name}:{hit.event.base_offset}"
        for hit in found.with_id(text)
        if hit is not None
    ]


def children(found: Finder, text: str) -> list[str]:
    return [
        f"{hit.topic.name}:{hit.event.base_offset}"
        for hit in found.children(text)
        if hit is not None
    ]


def test_an_event_is_found_by_the_id_it_was_given(scene: Scene) -> None:
    scene.publish("a", 3, ids=["x", "y", "x"])

    assert with_id(finder(scene), "x") == ["a:0", "a:2"]


def test_an_event_is_found_by_the_id_that_was_made_up(scene: Scene) -> None:
    scene.publish("a", 3)
    ids = scene.publish("b", 5)

    assert [with_id(finder(scene), id_) for id_ in ids] == [
        [f"b:{offset}"] for offset in range(5)
    ]


def test_a_made_up_id_among_given_ones_is_found_once(scene: Scene) -> None:
    ids = scene.publish("a", 3, ids=["x", None, "y"])

    assert with_id(finder(scene), ids[1]) == ["a:1"]


def test_another_spelling_of_an_id_is_another_id(scene: Scene) -> None:
    (id_,) = scene.publish("a")

    assert with_id(finder(scene), id_.upper()) == []
    assert with_id(finder(scene), id_.replace("-", "_")) == []


def test_an_id_behind_the_end_of_its_batch_is_nobodys(scene: Scene) -> None:
    ids = scene.publish("a", 2)
    following = f"{ids[1][:-1]}{(int(ids[1][-1], 16) + 1) % 16:x}"

    assert with_id(finder(scene), following) == []


def test_events_are_found_by_their_parent(scene: Scene) -> None:
    scene.publish("a", 3, parents=["p", None, "p"])
    scene.publish("b", 1, parents=["p"])

    assert children(finder(scene), "p") == ["a:0", "a:2", "b:0"]


def test_what_only_shares_a_key_is_not_found(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "blake2b", _same)
    scene.publish("a", 2, ids=["x", "y"], parents=["p", "q"])

    assert with_id(finder(scene), "x") == ["a:0"]
    assert children(finder(scene), "q") == ["a:1"]


class _same:
    def __init__(self, data: bytes, digest_size: int) -> None:
        self._size = digest_size

    def digest(self) -> bytes:
        return bytes(self._size)


def test_what_was_trimmed_compacted_or_deleted_is_not_found(scene: Scene) -> None:
    ids = scene.publish("a", 4, parents=["p"] * 4, keys=[None, b"k", b"k", None])
    scene.publish("b", 1, parents=["p"])
    found = finder(scene)
    scene.log.compact("a")
    scene.log.trim("a", 1)
    scene.log.delete_topic("b")

    assert children(found, "p") == ["a:2", "a:3"]
    assert [with_id(found, id_) for id_ in ids] == [[], [], ["a:2"], ["a:3"]]


def test_many_rows_come_page_by_page(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "PAGE", 10)
    scene.publish("a", 95, parents=["p"] * 95)

    assert len(children(finder(scene), "p")) == 95


def test_every_pause_has_a_price(scene: Scene) -> None:
    scene.publish("a", 50, parents=["p"] * 50)
    found = finder(scene)

    children(found, "p")

    assert found._meter.left < -50 * 20


def test_batches_are_kept_within_limits(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "MAX_FRAMES", 3)
    for _ in range(10):
        scene.publish("a", parents=["p"])
    found = finder(scene)

    children(found, "p")

    assert len(found._frames) == 3
    found.forget()
    assert found._frames == []


def test_an_offset_without_an_event_has_none(scene: Scene) -> None:
    scene.publish("a", 3, keys=[b"k", b"k", None])
    found = finder(scene)
    topic = scene.log.topic("a")
    scene.log.compact("a")

    assert [found.at(topic, offset) is None for offset in range(-1, 4)] == [
        True,
        True,
        False,
        False,
        True,
    ]
