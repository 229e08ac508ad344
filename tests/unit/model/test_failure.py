from __future__ import annotations

import msgspec
import pytest

from penstock.model.failure import (
    MAX_KIND_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_TRACEBACK_BYTES,
    Failure,
    of_lines,
    refused,
)


@pytest.mark.parametrize(
    ("kind", "message", "line"),
    [
        ("ValueError", "bad", "ValueError: bad"),
        ("KeyError", "", "KeyError"),
        ("Refused", "no", "no"),
        ("", "an old text", "an old text"),
        ("Timeout", "no answer", "Timeout: no answer"),
    ],
)
def test_line_reads_like_the_last_line_of_a_traceback(
    kind: str, message: str, line: str
) -> None:
    assert Failure(0, 1, kind, message).line == line


def test_failure_is_noted_with_its_try_and_time() -> None:
    assert refused("no").noted(3, 1.5) == Failure(1500, 3, "Refused", "no")
    assert Failure(7, 0, "E", "m", "tb", 0.5).noted(1, 1.5) == Failure(
        7, 1, "E", "m", "tb", 0.5
    )


def test_noted_texts_are_bounded_and_a_traceback_keeps_its_end() -> None:
    noted = Failure(0, 0, "k" * 999, "m" * 9999, "t" * 99_999 + "end").noted(1, 0.0)

    assert len(noted.kind) == MAX_KIND_BYTES
    assert len(noted.message) == MAX_MESSAGE_BYTES
    assert len(noted.traceback) == MAX_TRACEBACK_BYTES
    assert noted.traceback.endswith("tend")


def test_wide_texts_have_no_more_room_than_others() -> None:
    noted = Failure(0, 0, "k€" * 999, "m€" * 9999, "€t" * 99_999).noted(1, 0.0)

    assert noted.size <= MAX_KIND_BYTES + MAX_MESSAGE_BYTES + MAX_TRACEBACK_BYTES
    assert noted.size > MAX_MESSAGE_BYTES + MAX_TRACEBACK_BYTES
    assert noted.message.startswith("m€m€")
    assert noted.traceback.endswith("t€t")


def test_noted_texts_can_be_stored_whatever_was_said() -> None:
    noted = Failure(0, 0, "\udcff", "a\ud800b", "\udc00").noted(1, 0.0)

    assert (noted.kind, noted.message, noted.traceback) == ("?", "a?b", "?")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(noted), type=Failure) == noted


def test_lines_of_older_records_are_failures_in_their_order() -> None:
    known = Failure(5, 9, "E", "m")

    assert of_lines(["one", "two"]) == [
        Failure(0, 1, "", "one"),
        Failure(0, 2, "", "two"),
    ]
    assert of_lines([known]) == [known]
