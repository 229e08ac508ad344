from __future__ import annotations

import pytest

from penstock.errors import NoRoute, WrongMethod
from penstock.http.router import Router


@pytest.fixture
def router() -> Router[str]:
    router: Router[str] = Router()
    router.add("GET", "/v1/letters", "list")
    router.add("GET", "/v1/letters/groups", "groups")
    router.add("GET", "/v1/letters/{number}", "show")
    router.add("POST", "/v1/letters/drop", "drop")
    router.add("POST", "/v1/letters/{number}/edit", "edit")
    router.add("DELETE", "/v1/subs/{who}/{topic}", "forget")
    return router


@pytest.mark.parametrize(
    ("method", "segments", "found"),
    [
        ("GET", ("v1", "letters"), ("list", {})),
        ("HEAD", ("v1", "letters"), ("list", {})),
        ("GET", ("v1", "letters", "groups"), ("groups", {})),
        ("GET", ("v1", "letters", "7"), ("show", {"number": "7"})),
        ("GET", ("v1", "letters", "drop"), ("show", {"number": "drop"})),
        ("POST", ("v1", "letters", "drop"), ("drop", {})),
        ("POST", ("v1", "letters", "drop", "edit"), ("edit", {"number": "drop"})),
        (
            "DELETE",
            ("v1", "subs", "a/b", ".."),
            ("forget", {"who": "a/b", "topic": ".."}),
        ),
    ],
)
def test_what_is_written_wins(
    router: Router[str],
    method: str,
    segments: tuple[str, ...],
    found: tuple[str, dict[str, str]],
) -> None:
    assert router.find(method, segments) == found


@pytest.mark.parametrize(
    "segments",
    [("",), ("v1",), ("v1", "letters", ""), ("v1", "letters", "7", "x"), ("v2",)],
)
def test_what_leads_nowhere_is_no_route(
    router: Router[str], segments: tuple[str, ...]
) -> None:
    with pytest.raises(NoRoute):
        router.find("GET", segments)


def test_another_method_is_told_which_ones_there_are(router: Router[str]) -> None:
    with pytest.raises(WrongMethod) as raised:
        router.find("PUT", ("v1", "letters", "drop"))

    assert raised.value.allowed == ("GET", "HEAD", "POST")


def test_a_route_is_there_once(router: Router[str]) -> None:
    with pytest.raises(AssertionError):
        router.add("GET", "/v1/letters/{other}", "again")
