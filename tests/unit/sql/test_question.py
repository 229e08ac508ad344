from __future__ import annotations

import msgspec
import pytest

from penstock.errors import InvalidQuery, Moved, PenstockError
from penstock.sql.question import (
    MAX_TEXT,
    SqlRefusal,
    error_of,
    refusal_of,
    too_long,
    too_much_memory,
)


@pytest.mark.parametrize(
    "error",
    [InvalidQuery("no topic x", "did you mean y?"), too_long(2.5), too_much_memory(9)],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_the_same_on_the_other_side(error: PenstockError) -> None:
    sent = msgspec.json.encode(refusal_of(error))

    found = error_of(msgspec.json.decode(sent, type=SqlRefusal))

    assert type(found) is type(error)
    assert (str(found), found.hint) == (str(error), error.hint)


def test_any_other_error_is_told_without_the_files_of_the_server() -> None:
    found = error_of(refusal_of(Moved("/data/journal/7")))

    assert isinstance(found, InvalidQuery)
    assert "/data" not in str(found)
    assert found.hint == Moved.hint


def test_a_text_without_an_end_is_cut() -> None:
    assert len(str(error_of(refusal_of(InvalidQuery("x" * 10_000))))) == MAX_TEXT


def test_no_other_class_is_made() -> None:
    with pytest.raises(LookupError):
        error_of(SqlRefusal(error="SystemExit", arguments=[]))
