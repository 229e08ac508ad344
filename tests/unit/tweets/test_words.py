from __future__ import annotations

from collections import Counter

from penstock.tweets.words import as_text, emotion_values


def test_the_values_are_those_of_the_original_list() -> None:
    counts = {-5: 16, -4: 43, -3: 263, -2: 966, -1: 309, 0: 1}
    counts |= {1: 208, 2: 448, 3: 172, 4: 45, 5: 5}

    values = emotion_values()

    assert len(values) == 2476
    assert Counter(values.values()) == counts
    assert (values["good"], values["bad"], values["naïve"]) == (3, -3, -2)


def test_the_text_has_a_line_for_each_word() -> None:
    lines = as_text().split("\r\n")

    assert lines.pop() == ""
    assert lines[0] == "abandon\t-2"
    assert {
        word: int(value) for word, value in (line.split("\t") for line in lines)
    } == (emotion_values())
