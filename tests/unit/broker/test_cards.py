from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from penstock.broker.card import EMPTY
from penstock.broker.cards import Cards
from penstock.broker.options import BrokerOptions
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


def register(cards: Cards, schema: object, topic: str = "t") -> int:
    return cards.register(topic, schema, type_="T", **SAID).number


def filled(scene: Scene) -> Cards:
    cards = scene.broker.cards
    register(cards, INTEGER)
    cards.set_mode("t", "full")
    cards.describe("t", "# t", **SAID)
    cards.comment("t", "hm", **SAID)
    return cards


# Registering


def test_versions_count_from_one() -> None:
    cards = Cards(BrokerOptions())

    assert [register(cards, INTEGER), register(cards, NUMBER)] == [1, 2]
    assert cards.version("t").schema == NUMBER
    assert cards.version("t", 1).schema == INTEGER
    assert (cards.version("t").type, cards.version("t").by) == ("T", "ann")


def test_the_latest_version_again_changes_nothing() -> None:
    cards = Cards(BrokerOptions())
    register(cards, INTEGER)
    cards.collect()

    assert register(cards, ' { "type" : "integer" } ') == 1
    assert register(cards, {"type": "integer"}) == 1
    assert not cards.urgent


def test_what_is_said_again_changes_nothing() -> None:
    cards = Cards(BrokerOptions())
    cards.describe("t", "# t", **SAID)
    cards.set_mode("t", "full")
    cards.collect()

    cards.describe("t", "# t", **SAID)
    cards.set_mode("t", "full")
    cards.forget("nobody")

    assert not cards.urgent


def test_what_is_not_there_is_told() -> None:
    cards = Cards(BrokerOptions())
    with pytest.raises(UnknownSchema):
        cards.version("t")
    register(cards, INTEGER)

    with pytest.raises(UnknownSchema):
        cards.version("t", 2)
    with pytest.raises(UnknownComment):
        cards.uncomment("t", 1)
    assert cards["other"] == EMPTY


def test_a_version_has_to_agree_with_the_one_before() -> None:
    cards = Cards(BrokerOptions())
    register(cards, NUMBER)

    with pytest.raises(IncompatibleSchema) as caught:
        register(cards, INTEGER)

    assert (caught.value.version, caught.value.mode) == (1, "backward")
    assert caught.value.problems[0][0] == "$"
    cards.set_mode("t", "forward")
    assert register(cards, INTEGER) == 2
    with pytest.raises(IncompatibleSchema):
        register(cards, NUMBER)
    cards.set_mode("t", "none")
    assert register(cards, TEXT) == 3


def test_what_is_no_schema_is_refused() -> None:
    cards = Cards(BrokerOptions())

    for bad in (b"{", b"[]", b'{"type":"text"}'):
        with pytest.raises(InvalidSchema):
            register(cards, bad)
    assert cards["t"] == EMPTY


# Limits


def test_every_limit_is_kept() -> None:
    options = BrokerOptions(
        max_schema_bytes=20,
        max_schema_versions=1,
        max_documentation_bytes=4,
        max_comments=1,
        max_comment_bytes=4,
    )
    cards = Cards(options)
    register(cards, INTEGER)
    cards.comment("t", "aaaa", **SAID)
    cards.describe("t", "aaaa", **SAID)

    with pytest.raises(LimitReached, match="max_schema_versions"):
        register(cards, NUMBER)
    with pytest.raises(TooLarge, match="max_schema_bytes is 20"):
        register(cards, {"type": "integer", "title": "too long"})
    with pytest.raises(TooLarge, match="max_documentation_bytes is 4"):
        cards.describe("t", "ääa", **SAID)
    with pytest.raises(LimitReached, match="max_comments"):
        cards.comment("t", "b", **SAID)
    with pytest.raises(TooLarge, match="max_comment_bytes is 4"):
        cards.comment("t", "ääa", **SAID)


def test_all_cards_together_have_a_limit() -> None:
    cards = Cards(BrokerOptions(max_card_bytes=200))
    cards.describe("a", "x" * 150, **SAID)

    with pytest.raises(LimitReached, match="max_card_bytes"):
        cards.comment("b", "x" * 60, **SAID)
    cards.describe("a", "y" * 190, **SAID)
    cards.forget("a")
    cards.comment("b", "x" * 60, **SAID)


# Payloads


def test_payloads_have_to_fit_the_latest_version() -> None:
    cards = Cards(BrokerOptions())
    assert cards.refused("t", [b"x"]) == {}
    register(cards, INTEGER)

    with pytest.raises(InvalidPayload) as caught:
        cards.gates["t"].check([b"1", b'"x"', b"nonsense"])

    found = caught.value
    assert (found.topic, found.index, found.path, found.version) == ("t", 1, "$", 1)
    refused = cards.refused("t", [b"1", b'"x"', b"nonsense"])
    assert list(refused) == [1, 2]
    assert "is not JSON" in refused[2].reason
    register(cards, NUMBER)
    cards.gates["t"].check([b"1.5"])


# Surviving


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_cards_survive(restart: str, checkpoint: bool) -> None:
    scene = Scene()
    cards = filled(scene)
    scene.commit()
    if checkpoint:
        scene.log.checkpoint()
    register(cards, {"type": "integer", "title": "2"})
    cards.comment("t", "again", **SAID)
    cards.uncomment("t", 1)
    scene.commit()
    before = cards["t"]

    scene.restart(restart)

    assert scene.broker.cards["t"] == before
    assert scene.broker.cards.version("t").number == 2
    assert scene.broker.cards.gates.keys() == {"t"}
    assert scene.broker.cards.comment("t", "3", **SAID).number == 3


@pytest.mark.parametrize("seed", range(30))
def test_what_is_confirmed_survives_a_torn_tail(seed: int) -> None:
    scene = Scene()
    filled(scene)
    scene.commit()
    confirmed = scene.broker.cards["t"]
    late = scene.broker.cards.comment("t", "never confirmed", **SAID)
    scene.disk.cut_power_in(1 + seed % 3)
    with suppress(PowerCut):
        scene.commit()

    scene.disk = scene.disk.crashed(Random(seed))
    scene.broker = scene._open()

    card = scene.broker.cards["t"]
    assert card.comments in (confirmed.comments, [*confirmed.comments, late])
    assert card.versions == confirmed.versions
    assert (card.mode, card.documentation) == ("full", confirmed.documentation)


def test_a_failed_group_is_undone() -> None:
    scene = Scene()
    cards = filled(scene)
    scene.commit()
    before = cards["t"]
    register(cards, {"type": "integer", "title": "2"})
    cards.set_mode("t", "none")
    cards.describe("t", "", **SAID)
    cards.uncomment("t", 1)
    register(cards, INTEGER, "t2")

    scene.fail_commit()

    assert cards["t"] == before
    assert cards.gates["t"].version.number == 1
    assert cards["t2"] == EMPTY
    assert "t2" not in cards.gates
    scene.restart()
    assert scene.broker.cards["t"] == before


def test_a_card_goes_with_its_topic() -> None:
    scene = Scene()
    filled(scene)
    scene.commit()

    scene.broker.delete_topic("t")

    scene.commit()
    scene.broker.create_topic("t")
    assert scene.broker.cards["t"] == EMPTY
    scene.broker.publish("t", Columns([b"anything"]))
    scene.commit()
    scene.restart()

    assert scene.broker.cards["t"] == EMPTY


def test_a_card_of_a_deleted_topic_is_dropped_after_a_crash() -> None:
    scene = Scene()
    filled(scene)
    scene.commit()
    scene.broker.delete_topic("t")
    scene.commit()

    scene.restart()  # the record that forgets it was never written

    assert scene.broker.cards["t"] == EMPTY
    scene.broker.create_topic("t")
    scene.commit()
    scene.restart()
    assert scene.broker.cards["t"] == EMPTY


def test_a_deleted_card_stays_deleted_if_the_commit_fails() -> None:
    scene = Scene()
    cards = filled(scene)
    scene.commit()
    scene.broker.delete_topic("t")
    scene.commit()
    scene.broker.create_topic("t")
    register(cards, TEXT)

    scene.fail_commit()

    assert cards["t"] == EMPTY
    assert cards.urgent
    scene.broker.create_topic("t")
    scene.commit()
    scene.restart()
    assert scene.broker.cards["t"] == EMPTY


def test_a_card_of_a_topic_whose_creation_failed_is_gone() -> None:
    scene = Scene()
    scene.broker.create_topic("new")
    register(scene.broker.cards, INTEGER, "new")

    scene.fail_commit()

    assert scene.broker.cards["new"] == EMPTY
    assert "new" not in scene.broker.cards.gates
