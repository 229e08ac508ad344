from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from penstock.broker.options import BrokerOptions
from penstock.broker.topic_metadata import EMPTY
from penstock.broker.topic_registry import TopicRegistry
from penstock.errors import (
    IncompatibleSchema,
    InvalidPayload,
    InvalidSchema,
    LimitReached,
    TooLarge,
    UnknownComment,
    UnknownSchema,
)
from penstock.log import Columns
from penstock.testing.crashdisk import PowerCut
from tests.unit.delivery.scene import RESTARTS, Scene

INTEGER = b'{"type":"integer"}'
NUMBER = b'{"type":"number"}'
TEXT = b'{"type":"string"}'
SAID: dict[str, Any] = {"at_ms": 5, "by": "ann"}


def register(registry: TopicRegistry, schema: object, topic: str = "t") -> int:
    return registry.register(topic, schema, type_="T", **SAID).number


def filled(scene: Scene) -> TopicRegistry:
    registry = scene.broker.registry
    register(registry, INTEGER)
    registry.set_mode("t", "full")
    registry.describe("t", "# t", **SAID)
    registry.comment("t", "hm", **SAID)
    return registry


# Registering


def test_versions_count_from_one() -> None:
    registry = TopicRegistry(BrokerOptions())

    assert [register(registry, INTEGER), register(registry, NUMBER)] == [1, 2]
    assert registry.version("t").schema == NUMBER
    assert registry.version("t", 1).schema == INTEGER
    assert (registry.version("t").type, registry.version("t").by) == ("T", "ann")


def test_the_latest_version_again_changes_nothing() -> None:
    registry = TopicRegistry(BrokerOptions())
    register(registry, INTEGER)
    registry.collect()

    assert register(registry, ' { "type" : "integer" } ') == 1
    assert register(registry, {"type": "integer"}) == 1
    assert not registry.urgent


def test_what_is_said_again_changes_nothing() -> None:
    registry = TopicRegistry(BrokerOptions())
    registry.describe("t", "# t", **SAID)
    registry.set_mode("t", "full")
    registry.collect()

    registry.describe("t", "# t", **SAID)
    registry.set_mode("t", "full")
    registry.forget("nobody")

    assert not registry.urgent


def test_what_is_not_there_is_told() -> None:
    registry = TopicRegistry(BrokerOptions())
    with pytest.raises(UnknownSchema):
        registry.version("t")
    register(registry, INTEGER)

    with pytest.raises(UnknownSchema):
        registry.version("t", 2)
    with pytest.raises(UnknownComment):
        registry.uncomment("t", 1)
    assert registry["other"] == EMPTY


def test_a_version_has_to_agree_with_the_one_before() -> None:
    registry = TopicRegistry(BrokerOptions())
    register(registry, NUMBER)

    with pytest.raises(IncompatibleSchema) as caught:
        register(registry, INTEGER)

    assert (caught.value.version, caught.value.mode) == (1, "backward")
    assert caught.value.problems[0][0] == "$"
    registry.set_mode("t", "forward")
    assert register(registry, INTEGER) == 2
    with pytest.raises(IncompatibleSchema):
        register(registry, NUMBER)
    registry.set_mode("t", "none")
    assert register(registry, TEXT) == 3


def test_what_is_no_schema_is_refused() -> None:
    registry = TopicRegistry(BrokerOptions())

    for bad in (b"{", b"[]", b'{"type":"text"}'):
        with pytest.raises(InvalidSchema):
            register(registry, bad)
    assert registry["t"] == EMPTY


# Limits


def test_every_limit_is_kept() -> None:
    options = BrokerOptions(
        max_schema_bytes=20,
        max_schema_versions=1,
        max_documentation_bytes=4,
        max_comments=1,
        max_comment_bytes=4,
    )
    registry = TopicRegistry(options)
    register(registry, INTEGER)
    registry.comment("t", "aaaa", **SAID)
    registry.describe("t", "aaaa", **SAID)

    with pytest.raises(LimitReached, match="max_schema_versions"):
        register(registry, NUMBER)
    with pytest.raises(TooLarge, match="max_schema_bytes is 20"):
        register(registry, {"type": "integer", "title": "too long"})
    with pytest.raises(TooLarge, match="max_documentation_bytes is 4"):
        registry.describe("t", "ääa", **SAID)
    with pytest.raises(LimitReached, match="max_comments"):
        registry.comment("t", "b", **SAID)
    with pytest.raises(TooLarge, match="max_comment_bytes is 4"):
        registry.comment("t", "ääa", **SAID)


def test_all_cards_together_have_a_limit() -> None:
    registry = TopicRegistry(BrokerOptions(max_metadata_bytes=200))
    registry.describe("a", "x" * 150, **SAID)

    with pytest.raises(LimitReached, match="max_metadata_bytes"):
        registry.comment("b", "x" * 60, **SAID)
    registry.describe("a", "y" * 190, **SAID)
    registry.forget("a")
    registry.comment("b", "x" * 60, **SAID)


# Payloads


def test_payloads_have_to_fit_the_latest_version() -> None:
    registry = TopicRegistry(BrokerOptions())
    assert registry.refused("t", [b"x"]) == {}
    register(registry, INTEGER)

    with pytest.raises(InvalidPayload) as caught:
        registry.gates["t"].check([b"1", b'"x"', b"nonsense"])

    found = caught.value
    assert (found.topic, found.index, found.path, found.version) == ("t", 1, "$", 1)
    refused = registry.refused("t", [b"1", b'"x"', b"nonsense"])
    assert list(refused) == [1, 2]
    assert "is not JSON" in refused[2].reason
    register(registry, NUMBER)
    registry.gates["t"].check([b"1.5"])


# Surviving


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_metadata_survives(restart: str, checkpoint: bool) -> None:
    scene = Scene()
    registry = filled(scene)
    scene.commit()
    if checkpoint:
        scene.log.checkpoint()
    register(registry, {"type": "integer", "title": "2"})
    registry.comment("t", "again", **SAID)
    registry.uncomment("t", 1)
    scene.commit()
    before = registry["t"]

    scene.restart(restart)

    assert scene.broker.registry["t"] == before
    assert scene.broker.registry.version("t").number == 2
    assert scene.broker.registry.gates.keys() == {"t"}
    assert scene.broker.registry.comment("t", "3", **SAID).number == 3


@pytest.mark.parametrize("seed", range(30))
def test_what_is_confirmed_survives_a_torn_tail(seed: int) -> None:
    scene = Scene()
    filled(scene)
    scene.commit()
    confirmed = scene.broker.registry["t"]
    late = scene.broker.registry.comment("t", "never confirmed", **SAID)
    scene.disk.cut_power_in(1 + seed % 3)
    with suppress(PowerCut):
        scene.commit()

    scene.disk = scene.disk.crashed(Random(seed))
    scene.broker = scene._open()

    metadata = scene.broker.registry["t"]
    assert metadata.comments in (confirmed.comments, [*confirmed.comments, late])
    assert metadata.versions == confirmed.versions
    assert (metadata.mode, metadata.documentation) == ("full", confirmed.documentation)


def test_a_failed_group_is_undone() -> None:
    scene = Scene()
    registry = filled(scene)
    scene.commit()
    before = registry["t"]
    register(registry, {"type": "integer", "title": "2"})
    registry.set_mode("t", "none")
    registry.describe("t", "", **SAID)
    registry.uncomment("t", 1)
    register(registry, INTEGER, "t2")

    scene.fail_commit()

    assert registry["t"] == before
    assert registry.gates["t"].version.number == 1
    assert registry["t2"] == EMPTY
    assert "t2" not in registry.gates
    scene.restart()
    assert scene.broker.registry["t"] == before


def test_a_card_goes_with_its_topic() -> None:
    scene = Scene()
    filled(scene)
    scene.commit()

    scene.broker.delete_topic("t")

    scene.commit()
    scene.broker.create_topic("t")
    assert scene.broker.registry["t"] == EMPTY
    scene.broker.publish("t", Columns([b"anything"]))
    scene.commit()
    scene.restart()

    assert scene.broker.registry["t"] == EMPTY


def test_a_card_of_a_deleted_topic_is_dropped_after_a_crash() -> None:
    scene = Scene()
    filled(scene)
    scene.commit()
    scene.broker.delete_topic("t")
    scene.commit()

    scene.restart()  # the record that forgets it was never written

    assert scene.broker.registry["t"] == EMPTY
    scene.broker.create_topic("t")
    scene.commit()
    scene.restart()
    assert scene.broker.registry["t"] == EMPTY


def test_a_deleted_card_stays_deleted_if_the_commit_fails() -> None:
    scene = Scene()
    registry = filled(scene)
    scene.commit()
    scene.broker.delete_topic("t")
    scene.commit()
    scene.broker.create_topic("t")
    register(registry, TEXT)

    scene.fail_commit()

    assert registry["t"] == EMPTY
    assert registry.urgent
    scene.broker.create_topic("t")
    scene.commit()
    scene.restart()
    assert scene.broker.registry["t"] == EMPTY


def test_a_card_of_a_topic_whose_creation_failed_is_gone() -> None:
    scene = Scene()
    scene.broker.create_topic("new")
    register(scene.broker.registry, INTEGER, "new")

    scene.fail_commit()

    assert scene.broker.registry["new"] == EMPTY
    assert "new" not in scene.broker.registry.gates
