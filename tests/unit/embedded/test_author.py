from __future__ import annotations

import getpass

import pytest

from penstock.embedded.aio import author, signed


def test_a_program_has_the_name_it_was_given() -> None:
    assert author("shop") == "shop"


def test_without_a_name_it_is_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")

    assert author("") == "ada"


@pytest.mark.parametrize("error", [OSError, KeyError])
def test_a_user_without_a_name_is_a_number(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def unknown() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", unknown)

    assert author("").startswith("uid ")


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        ("dead-letters.republish", {"a": 1}, {"a": 1, "by": "me"}),
        ("dead-letters.drop", {"by": ""}, {"by": "me"}),
        ("schemas.register", {"by": "ada"}, {"by": "ada"}),
        ("topics", {"after": "t"}, {"after": "t"}),
        ("no.such.verb", {}, {}),
    ],
)
def test_orders_are_signed_and_questions_are_not(
    verb: str, given: dict[str, object], said: dict[str, object]
) -> None:
    assert signed(verb, given, "me") == said
