from __future__ import annotations

import pytest

from penstock.http.access import Access, Who, matches

ADMIN = Who(name="a", scope="admin")
OPEN = Who(name="", scope="open")
READ = Who(name="r", scope="read")
TOPICS = Who(name="t", scope="topics", publish=("in",), subscribe=("out/*",))


@pytest.mark.parametrize("access", Access)
@pytest.mark.parametrize("who", [ADMIN, OPEN])
def test_an_admin_may_do_everything(who: Who, access: Access) -> None:
    assert who.may(access, "t")
    assert who.may(access)


def test_a_reader_may_read_everything_and_change_nothing() -> None:
    allowed = {access for access in Access if READ.may(access, "t")}

    assert allowed == {
        Access.NONE,
        Access.ANY,
        Access.READ,
        Access.SEE,
        Access.FOLLOW,
    }


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        ("in", {Access.PUBLISH, Access.SEE}),
        ("out/a", {Access.FOLLOW, Access.CONSUME, Access.SEE}),
        ("out", set()),
        ("other", set()),
        ("$errors", set()),
        (None, set()),
    ],
)
def test_a_token_of_topics_may_do_what_its_patterns_say(
    topic: str | None, allowed: set[Access]
) -> None:
    found = {access for access in Access if TOPICS.may(access, topic)}

    assert found == allowed | {Access.NONE, Access.ANY}


def test_a_star_elsewhere_than_at_the_end_is_a_star() -> None:
    assert matches(("a*b",), "a*b")
    assert not matches(("a*b",), "axb")


def test_a_star_alone_takes_all_topics_but_penstocks_own() -> None:
    assert matches(("*",), "anything")
    assert not matches(("*",), "$dead-letters")
