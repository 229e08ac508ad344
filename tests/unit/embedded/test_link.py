from __future__ import annotations

import inspect

import pytest

from penstock.embedded.link import Link
from penstock.embedded.local import LocalLink
from penstock.embedded.remote import RemoteLink


@pytest.mark.parametrize("made", [LocalLink, RemoteLink])
def test_both_kinds_of_broker_answer_the_same_calls(made: type) -> None:
    names = [name for name in vars(Link) if not name.startswith("_")]

    assert "publish" in names
    for name in names:
        wanted = inspect.signature(getattr(Link, name))
        found = inspect.signature(getattr(made, name))
        assert list(found.parameters) == list(wanted.parameters), name
