from __future__ import annotations

import pytest

from penstock.access.grants import Grants, Rule
from penstock.errors import NotAllowed
from penstock.http.access import Access, Who, matches, user

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


ADMINS = "it needs an administrator"
ANNA = Grants(
    user="anna",
    rules=(Rule("publish", "in/#"), Rule("subscribe", "out"), Rule("read", "old")),
)


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        ("in/a", {Access.PUBLISH, Access.SEE}),
        ("out", {Access.FOLLOW, Access.CONSUME, Access.SEE}),
        ("old", {Access.FOLLOW, Access.SEE}),
        ("other", set()),
        ("$errors", set()),
        (None, set()),
    ],
)
def test_a_user_with_rules_may_do_what_they_say(
    topic: str | None, allowed: set[Access]
) -> None:
    who = user(ANNA)

    found = {access for access in Access if who.may(access, topic)}

    assert found == allowed | {Access.NONE, Access.ANY}
    assert (who.name, who.scope) == ("anna", "topics")


@pytest.mark.parametrize("rules", [None, (), ANNA.rules])
def test_a_user_who_may_administer_may_do_everything(
    rules: tuple[Rule, ...] | None,
) -> None:
    who = user(Grants(user="anna", rules=rules, admin=True))

    assert (who.name, who.scope) == ("anna", "admin")
    assert all(who.may(access) for access in Access)
    who.need_as("t", "anybody")


def test_a_user_without_rules_may_do_all_but_administer() -> None:
    who = user(Grants(user="anna"))

    assert (who.name, who.scope) == ("anna", "use")
    assert {one for one in Access if not who.may(one)} == {Access.ADMIN}
    who.need_as("t", "anybody")


def test_a_subscriber_may_be_named_that_the_rules_name() -> None:
    who = user(Grants(user="anna", rules=(Rule("subscribe", "out", ("job-*",)),)))

    who.need_as("out", "job-1")
    for topic, name, said in [
        ("out", "billing", "subscribe as billing to out: it needs the rule"),
        ("in", "job-1", "subscribe to in"),
    ]:
        with pytest.raises(NotAllowed, match=f"^user anna may not {said}"):
            who.need_as(topic, name)
    with pytest.raises(NotAllowed, match="^token r may not do this"):
        READ.need_as("out", "job-1")


@pytest.mark.parametrize(
    ("who", "access", "topic", "said"),
    [
        (user(ANNA), Access.PUBLISH, "out", "user anna may not publish to out"),
        (user(ANNA), Access.FOLLOW, "in", "user anna may not read in"),
        (user(ANNA), Access.CONSUME, "old", "user anna may not subscribe to old"),
        (user(ANNA), Access.SEE, "x", "user anna may not see x"),
        (user(ANNA), Access.READ, None, "user anna may not read everything"),
        (user(ANNA), Access.ADMIN, "in", f"user anna may not administer in: {ADMINS}"),
        (user(ANNA), Access.ADMIN, None, f"user anna may not administer: {ADMINS}"),
        (
            READ,
            Access.ADMIN,
            "t",
            "token r may not do this: it needs a token that may change everything",
        ),
    ],
)
def test_a_refusal_says_who_may_not_do_what(
    who: Who, access: Access, topic: str | None, said: str
) -> None:
    with pytest.raises(NotAllowed) as caught:
        who.need(access, topic)

    assert str(caught.value) == said
    assert caught.value.hint
    ADMIN.need(access, topic)
