from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from penstock.testing.maze import (
    first_difference,
    generate,
    line_of,
    notified,
    random_events,
    shuffled,
)


def numbers(data: bytes) -> list[int]:
    return [int(line.split(b"|")[0]) for line in data.splitlines()]


def test_a_seed_gives_one_load():
    assert generate(5, 500, 4) == generate(5, 500, 4)
    assert generate(5, 500, 4) != generate(6, 500, 4)


def test_all_numbers_are_there_and_shuffled_only_within_blocks():
    load = generate(1, 5000, 3, batch=40)

    start = 1
    for chunk in load.chunks:
        block = numbers(chunk)
        assert len(block) <= 40
        assert sorted(block) == list(range(start, start + len(block)))
        start += len(block)
    assert start == load.events + 1


def test_a_batch_of_one_is_in_order():
    load = generate(1, 200, 3, batch=1)

    assert numbers(b"".join(load.chunks)) == list(range(1, 201))


def test_each_client_gets_a_part_in_order():
    load = generate(3, 5000, 5)

    assert len(load.clients) == 5
    assert load.notifications > 100
    for lines in load.expected.values():
        assert numbers(lines) == sorted(numbers(lines))


def test_the_mix_is_kept_and_unfollows_are_of_follows():
    events = list(random_events(Random(2), 20_000, 100))

    kinds = Counter(kind for _, kind, _, _ in events)
    assert 0.5 < kinds["S"] / 20_000 < 0.6
    assert 0.13 < kinds["P"] / 20_000 < 0.17
    assert kinds["U"] <= kinds["F"]
    follows: Counter[tuple[int, int]] = Counter()
    for _, kind, one, other in events:
        follows[one, other] += {"F": 1, "U": -1}.get(kind, 0)
        assert follows[one, other] >= 0


def test_lines_end_as_asked():
    load = generate(1, 100, 2, line_end=b"\r\n")

    assert all(chunk.endswith(b"\r\n") for chunk in load.chunks)
    assert b"".join(load.chunks).count(b"\r\n") == 100


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ((666, "F", 60, 50), b"666|F|60|50"),
        ((1, "U", 12, 9), b"1|U|12|9"),
        ((542532, "B", 0, 0), b"542532|B"),
        ((43, "P", 32, 56), b"43|P|32|56"),
        ((634, "S", 32, 0), b"634|S|32"),
    ],
)
def test_lines_are_those_of_the_protocol(
    event: tuple[int, str, int, int], line: bytes
) -> None:
    assert line_of(event) == line


def test_the_model_follows_the_rules():
    events = [
        (1, "F", 1, 2),
        (2, "F", 1, 2),
        (3, "F", 9, 2),
        (4, "S", 2, 0),
        (5, "U", 1, 2),
        (6, "S", 2, 0),
        (7, "P", 1, 9),
        (8, "P", 9, 2),
        (9, "B", 0, 0),
        (10, "S", 77, 0),
        (11, "U", 5, 5),
    ]
    in_order = [(event, b"%d." % event[0]) for event in events]

    assert notified(in_order, [1, 2]) == {1: b"4.9.", 2: b"1.2.3.8.9."}


def test_blocks_cover_everything():
    lines = [b"%d\n" % number for number in range(100)]

    blocks = list(shuffled(Random(1), lines, 7))

    assert sorted(b"".join(blocks).splitlines(keepends=True)) == sorted(lines)


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (b"1|B\n2|B\n", None),
        (b"1|B\n3|B\n", "client 7 expected line b'2|B', but got b'3|B' (line 2)"),
        (b"1|B\n", "client 7 expected line b'2|B', but got b'' (line 2)"),
        (b"1|B\n2|B\n4|B\n", "client 7 expected line b'', but got b'4|B' (line 3)"),
    ],
)
def test_a_difference_is_told_as_a_line(got: bytes, text: str | None) -> None:
    assert first_difference(7, b"1|B\n2|B\n", got) == text
