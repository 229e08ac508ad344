from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from penstock.errors import InvalidOption
from penstock.gateway.options import (
    JsonOptions,
    LineOptions,
    MazeOptions,
    MqttOptions,
    NativeOptions,
)

KINDS = [LineOptions, JsonOptions, MazeOptions, MqttOptions, NativeOptions]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (LineOptions, "max_line_bytes", 0),
        (LineOptions, "window", 0),
        (LineOptions, "window", 100_001),
        (JsonOptions, "max_line_bytes", 0),
        (JsonOptions, "pub_tries", 0),
        (JsonOptions, "pub_interval_s", 0),
        (JsonOptions, "pubrel_tries", 0),
        (JsonOptions, "pubrel_interval_s", -1),
        (JsonOptions, "login_attempts", 0),
        (JsonOptions, "dead_letter_topic", ""),
        (MazeOptions, "max_line_bytes", 0),
        (MazeOptions, "topic", "a\0"),
        (MazeOptions, "hold_back", 0),
        (MazeOptions, "gap_s", 0),
        (MazeOptions, "restart_window", 0),
        (MazeOptions, "durability", "maybe"),
        (MazeOptions, "max_client_buffer_bytes", 0),
        (MqttOptions, "max_packet_bytes", 1023),
        (MqttOptions, "max_packet_bytes", (256 << 20) + 1),
        (MqttOptions, "receive_maximum", 0),
        (MqttOptions, "receive_maximum", 65_536),
        (MqttOptions, "topic_alias_maximum", 65_536),
        (MqttOptions, "send_aliases", -1),
        (MqttOptions, "window", 0),
        (MqttOptions, "window", 65_536),
        (MqttOptions, "max_keep_alive_s", 65_536),
        (MqttOptions, "max_session_s", -1),
        (MqttOptions, "max_filters", 0),
        (MqttOptions, "max_packet_filters", 0),
        (MqttOptions, "max_clients", 0),
        (MqttOptions, "sys_interval_s", -1),
        (MqttOptions, "no_subscribe", "a/# b/#/c"),
        (NativeOptions, "max_message_bytes", 1023),
        (NativeOptions, "max_fetch_bytes", 1023),
        (NativeOptions, "max_fetches", 0),
    ],
)
def test_setting_outside_its_limits_is_refused(
    kind: Any, name: str, value: object
) -> None:
    with pytest.raises(InvalidOption) as caught:
        kind(**{name: value})

    assert (caught.value.name, caught.value.value) == (name, value)


def test_a_topic_that_cannot_be_one_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidOption, match="a topic name; this one is empty"):
        JsonOptions(dead_letter_topic="")


def test_defaults_are_those_people_rely_on() -> None:
    line, json, maze = LineOptions(), JsonOptions(), MazeOptions()

    assert (line.max_line_bytes, line.window, line.create_on_sub) == (1 << 20, 1, False)
    assert (json.pub_tries, json.pub_interval_s) == (5, 10.0)
    assert (json.pubrel_tries, json.pubrel_interval_s) == (5, 10.0)
    assert json.dead_letter_topic == "deadLetterChan"
    assert (maze.topic, maze.durability, maze.store_absent) == ("maze", "os", False)


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_has_a_help_text(kind: Any) -> None:
    assert [one.name for one in fields(kind) if not one.metadata["help"]] == []


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ({"pub_word": ""}, "pub_word is '': must be a word without spaces"),
        ({"ack_word": "a b"}, "ack_word is 'a b': must be a word without spaces"),
        ({"sub_word": "a\n"}, "must be a word without spaces"),
        ({"sub_word": "pub"}, "must be another word than other commands have"),
        ({"unsub_word": "help"}, "must be another word than other commands have"),
    ],
)
def test_words_of_commands_can_be_told_apart(words: dict[str, str], limit: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(limit)):
        LineOptions(**words)  # type: ignore[arg-type]  # the names are right
