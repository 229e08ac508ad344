from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.access.grants import OPEN, Rule
from penstock.broker.options import BrokerOptions
from penstock.delivery.letters import TOPIC as LETTERS
from penstock.delivery.letters import decode_letter
from penstock.gateway.json_lines import RawLetters
from penstock.gateway.options import JsonOptions
from penstock.wire.jsonq import LineRefusal
from tests.unit.gateway.scene import Rules, Scene, limited
from tests.unit.log.faults import batches, payloads


def test_the_topic_is_bounded_whoever_makes_it(scene: Scene) -> None:
    broker = scene.broker
    broker.create_topic("mine", replace(broker.topic_options, retention_bytes=1 << 30))
    for name in ("deadLetterChan", "mine", "later"):
        RawLetters(broker, JsonOptions(dead_letter_topic=name))

    for name in ("deadLetterChan", "later"):
        broker.create_topic(name)
    scene.commit()

    bound = broker.options.dead_letter_retention_bytes
    found = {name: broker.log.topic(name).options for name in broker.log.topics()}
    assert found["deadLetterChan"].retention_bytes == bound
    assert found["later"].retention_bytes == bound
    assert found["mine"].retention_bytes == 1 << 30


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"hello\r", b'"hello"'),
        (b'say "x"', b'"say \\"x\\""'),
        (b"\xff\0", '"\ufffd\\u0000"'.encode()),
        (b"", b'""'),
    ],
)
def test_a_line_is_kept_in_the_topic_and_as_a_dead_letter(
    scene: Scene, line: bytes, text: bytes
) -> None:
    letters = RawLetters(scene.broker, JsonOptions())

    letters.add(line, "consumer", LineRefusal.INVALID_JSON, OPEN)
    scene.commit()

    (batch,) = batches(scene.broker.log, "deadLetterChan")
    assert list(batch.payloads()) == [text]
    assert list(batch.headers()) == [
        {"reason": "invalid JSON", "gateway": "json consumer"}
    ]
    (letter,) = map(decode_letter, payloads(scene.broker.log, LETTERS))
    assert (letter.gateway, letter.reason) == ("json consumer", "invalid JSON")
    assert letter.raw == line.rstrip(b"\r")
    assert letter.at_ms == int(scene.clock.now_s() * 1000)


def test_the_topic_is_a_setting_and_the_reason_is_said(scene: Scene) -> None:
    letters = RawLetters(scene.broker, JsonOptions(dead_letter_topic="odd"))

    letters.add(b"{}", "publisher", LineRefusal.UNKNOWN_COMMAND, OPEN)
    scene.commit()

    (batch,) = batches(scene.broker.log, "odd")
    assert list(batch.headers()) == [
        {"reason": "unknown command", "gateway": "json publisher"}
    ]


def test_of_a_line_that_is_too_long_the_fact_is_kept(scene: Scene) -> None:
    letters = RawLetters(scene.broker, JsonOptions(max_line_bytes=60))

    letters.add_overlong("publisher", OPEN)
    scene.commit()

    assert payloads(scene.broker.log, "deadLetterChan") == [b'""']
    (letter,) = map(decode_letter, payloads(scene.broker.log, LETTERS))
    assert (letter.reason, letter.raw) == ("line exceeds 60 bytes", b"")


def test_a_broker_that_can_keep_nothing_answers_all_the_same(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_topics=1)))
    scene.broker.create_topic("only")
    press = scene.connect("publisher")

    assert press.say("rubbish") == ["INVALID JSON"]
    assert scene.broker.log.topics() == ["only"]
    scene.close()


def test_lines_that_cannot_be_kept_do_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_topics=1)))
    scene.broker.create_topic("only")

    for _ in range(3):
        scene.connect("publisher").say(*["rubbish"] * 10)

    assert [vars(one)["action"] for one in caplog.records] == ["letter_lost"]
    scene.close()


def test_a_schema_for_the_topic_of_letters_loses_none(scene: Scene) -> None:
    scene.broker.create_topic("odd")
    schema = {"type": "integer"}
    scene.broker.registry.register("odd", schema, type_="", at_ms=0, by="")
    letters = RawLetters(scene.broker, JsonOptions(dead_letter_topic="odd"))

    letters.add(b"rubbish", "publisher", LineRefusal.INVALID_JSON, OPEN)
    scene.commit()

    (letter,) = map(decode_letter, payloads(scene.broker.log, LETTERS))
    assert letter.raw == b"rubbish"
    assert payloads(scene.broker.log, "odd") == []


@pytest.mark.parametrize("port", ["publisher", "consumer"])
def test_nonsense_writes_to_no_topic_that_its_sender_may_not_write_to(
    tmp_path: Path, port: str
) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "in"), Rule("subscribe", "in")))
    anna = scene.connect(port)

    anna.say("nonsense", "log anna pw", "nonsense")
    scene.commit()

    assert "deadLetterChan" not in scene.broker.log.topics()
    (letter,) = map(decode_letter, payloads(scene.broker.log, LETTERS))
    assert letter.raw == b"nonsense"
    scene.close()


def test_who_may_write_to_the_topic_of_letters_does(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "deadLetterChan")))
    anna = scene.connect("publisher")

    anna.say("log anna pw", "nonsense")
    scene.commit()

    assert payloads(scene.broker.log, "deadLetterChan") == [b'"nonsense"']
    scene.close()
