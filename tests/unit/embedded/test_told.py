from __future__ import annotations

import pytest

from penstock.embedded.told import as_told
from penstock.errors import InvalidBatch, PenstockError, ServerRefused, WriteFailed


@pytest.mark.parametrize("error", [InvalidBatch, WriteFailed])
def test_an_error_is_the_one_that_was_named(error: type[PenstockError]) -> None:
    with pytest.raises(error, match="no good") as caught, as_told():
        raise ServerRefused(error.__name__, "no good", "do better")

    assert isinstance(caught.value, ServerRefused)
    assert caught.value.hint == "do better"
    assert caught.value.retriable is error.retriable


@pytest.mark.parametrize(
    "name", ["Unheard", "ServerRefused", "PenstockError", "annotations", ""]
)
def test_what_is_not_known_stays_what_it_is(name: str) -> None:
    with pytest.raises(ServerRefused) as caught, as_told():
        raise ServerRefused(name, "no good")

    assert type(caught.value) is ServerRefused


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), as_told():
        raise KeyError
