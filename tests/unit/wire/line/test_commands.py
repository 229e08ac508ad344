from __future__ import annotations

import pytest

from penstock.errors import RemoteProtocolError
from penstock.wire.line.commands import (
    ARITY,
    MAX_PARTS,
    Command,
    command_run,
    publishes,
    split,
    text,
    unknown,
)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (b"", [b""]),
        (b" \t\r", [b""]),
        (b"sub a\r", [b"sub", b"a"]),
        (b"  sub a  ", [b"sub", b"a"]),
        (b"sub  a", [b"sub", b"", b"a"]),
        (b"ack t an id", [b"ack", b"t", b"an id"]),
        (b'pub t {"a": 1}\r', [b"pub", b"t", b'{"a": 1}']),
        (b"a b c d e", [b"a", b"b", b"c d e"]),
    ],
)
def test_line_is_trimmed_and_split_into_three_at_most(
    line: bytes, parts: list[bytes]
) -> None:
    assert split(line) == parts


def test_every_word_has_its_arity() -> None:
    words = {value for name, value in vars(Command).items() if name.isupper()}

    assert words == set(ARITY)
    assert max(ARITY.values()) == MAX_PARTS


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([b""], '[""]'),
        ([b"hello"], '["hello"]'),
        ([b"sub", b"a", b"b"], '["sub", "a", "b"]'),
        ([b'"\\'], r'["\"\\"]'),
        ([b"#{x} # #"], r'["\#{x} # #"]'),
        ([b"\a\b\t\n\v\f\r\x1b\x7f"], r'["\a\b\t\n\v\f\r\e\d"]'),
        (["é€😀".encode()], '["é€😀"]'),
        ([b"h\xff"], "[<<104, 255>>]"),
        ([b"a\0"], "[<<97, 0>>]"),
        ([b"\x01"], "[<<1>>]"),
        (["\x80".encode()], "[<<194, 128>>]"),
        ([b"x" * 4096], '["' + "x" * 4096 + '"]'),
        ([b"x" * 4097], '["' + "x" * 4096 + '" <> ...]'),
        ([b"\0" * 50], "[<<" + ", ".join("0" * 50) + ">>]"),
        ([b"\0" * 51], "[<<" + ", ".join("0" * 50) + ", ...>>]"),
    ],
    ids=range(15),
)
def test_unknown_command_is_quoted_in_elixir_notation(
    parts: list[bytes], shown: str
) -> None:
    assert unknown(parts) == f"error: unknown command: {shown}\r\n".encode()


def test_text_that_is_not_utf8_is_the_fault_of_the_peer() -> None:
    assert text("topic", "é".encode()) == "é"
    with pytest.raises(RemoteProtocolError) as caught:
        text("topic", b"a\xff")
    assert caught.value.text == "topic is not valid UTF-8 (byte 1)"


@pytest.mark.parametrize("length", [3, 300, 3000])
def test_lines_that_begin_alike_are_a_run(length: int) -> None:
    rests = [b"%d" % number * length for number in range(10, 20)]
    block = b"".join(b"pub t " + rest + b"\n" for rest in rests)

    assert command_run(block) == (Command.PUB, b"t", rests)


@pytest.mark.parametrize("length", [3, 300, 3000])
@pytest.mark.parametrize("other", [b"pub u x\n", b"ack t x\n", b"pub t\n", b"\n"])
def test_another_line_among_them_is_no_part_of_a_run(length: int, other: bytes) -> None:
    line = b"pub t " + bytes(length) + b"\n"

    assert command_run(line + line + other) is None
    assert command_run(line + other + line) is None


def test_a_run_of_publishes_is_taken_at_once() -> None:
    lines = [b"pub a {1}\r", b"pub a {2}", b"pub b {3} ", b"sub a", b"pub a {4}"]

    assert publishes(lines) == ([b"a", b"a", b"b"], [b"{1}\r", b"{2}", b"{3} "], 3)
    assert publishes(lines, 3) == ([], [], 3)
    assert publishes(lines, 4) == ([b"a"], [b"{4}"], 5)
    assert publishes(lines, 5) == ([], [], 5)
    assert publishes([]) == ([], [], 0)


def test_publishes_end_in_front_of_a_line_that_is_not_plain_wherever_it_is() -> None:
    good = [b"pub t%d {%d}" % (number % 3, number) for number in range(100)]

    for bad in (b"ack a 1", b"pub a", b" pub a {1}", b"pub a b", b"pub a ", b""):
        for at in (0, 1, 15, 16, 17, 99):
            lines = [*good[:at], bad, *good[at:]]
            topics, events, end = publishes(lines)
            assert (len(topics), end) == (at, at)
            assert events == [b"{%d}" % number for number in range(at)]
            assert publishes(lines, at + 1)[2] == 101


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"pub",
        b"pub a",
        b"pub a ",
        b"pub a 5",
        b" pub a {}",
        b"PUB a {}",
        b"pub  a {}",
        b"publish a {}",
    ],
)
def test_a_line_that_is_not_plain_ends_the_run(line: bytes) -> None:
    assert publishes([b"pub a {}", line, b"pub a {}"]) == ([b"a"], [b"{}"], 1)


def test_a_publish_to_no_topic_is_one_all_the_same() -> None:
    assert publishes([b"pub  {}"]) == ([b""], [b"{}"], 1)
    assert split(b"pub  {}") == [b"pub", b"", b"{}"]
