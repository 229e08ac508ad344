from __future__ import annotations

import pytest

from penstock.broker.release import release
from penstock.delivery.letters import decode_letter
from penstock.delivery.pending import Message
from penstock.errors import DiskFull, InvalidPayload
from tests.unit.delivery.scene import SMALL, Scene


def pending(scene: Scene, payload: bytes) -> Message:
    number = scene.broker.pending.add("t", payload, scene.now_s)
    scene.commit()
    message = scene.broker.pending.get(number)
    assert message is not None
    return message


def integers_only(scene: Scene) -> None:
    schema = {"type": "integer"}
    scene.broker.cards.register("t", schema, type_="", at_ms=0, by="")
    scene.commit()


def test_a_message_is_published_and_forgotten() -> None:
    scene = Scene()
    message = pending(scene, b"1")
    integers_only(scene)

    release(scene.broker, message, scene.now_s)
    scene.commit()

    assert scene.broker.pending.get(message.id) is None
    assert scene.log.read("t", 0)[0].payloads() == [b"1"]


def test_what_no_longer_fits_is_a_dead_letter_and_not_tried_again() -> None:
    scene = Scene()
    message = pending(scene, b'"x"')
    integers_only(scene)

    with pytest.raises(InvalidPayload):
        release(scene.broker, message, scene.now_s)

    (letter,) = map(decode_letter, scene.letters())
    assert (letter.topic, letter.raw) == ("t", b'"x"')
    assert "does not fit version 1" in letter.reason
    scene.restart()
    assert scene.broker.pending.get(message.id) is None
    assert scene.broker.pending.was_given_up(message.id)


def test_if_the_letter_is_lost_the_message_is_pending_again() -> None:
    scene = Scene()
    message = pending(scene, b'"x"')
    integers_only(scene)
    with pytest.raises(InvalidPayload):
        release(scene.broker, message, scene.now_s)

    scene.fail_commit()

    assert scene.broker.pending.get(message.id) == message


def test_if_the_letter_cannot_be_kept_the_message_stays() -> None:
    scene = Scene(log=SMALL)
    message = pending(scene, b'"x"')
    scene.refuse_appends()
    schema = {"type": "integer"}
    scene.broker.cards.register("t", schema, type_="", at_ms=0, by="")

    with pytest.raises(DiskFull):
        release(scene.broker, message, scene.now_s)

    assert scene.broker.pending.get(message.id) == message
