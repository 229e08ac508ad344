from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.access.grants import (
    ACTIONS,
    ADMINISTRATOR,
    MAX_KNOWN,
    OPEN,
    Grants,
    Rule,
    covers,
)
from penstock.errors import NotAllowed
from penstock.model.topic_filter import matches

ANNA = Grants(
    user="anna",
    rules=(
        Rule("publish", "sensors/#"),
        Rule("subscribe", "+/temp"),
        Rule("read", "archive"),
    ),
)


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        ("sensors/1/temp", {"publish", "see"}),
        ("sensors", {"publish", "see"}),
        ("sensors/temp", {"publish", "subscribe", "read", "see"}),
        ("room/temp", {"subscribe", "read", "see"}),
        ("archive", {"read", "see"}),
        ("$x/temp", set()),
        ("other", set()),
        ("", set()),
    ],
)
def test_a_user_may_do_what_the_rules_say(topic: str, allowed: set[str]) -> None:
    assert may(ANNA, topic) == allowed


@pytest.mark.parametrize("grants", [OPEN, ADMINISTRATOR])
def test_without_rules_all_but_administering_is_allowed(grants: Grants) -> None:
    assert may(grants, "$errors") == {*ACTIONS, "see"}
    assert grants.may_subscribe("#", "anybody")
    assert Grants(user="anna") != OPEN
    assert (OPEN.admin, ADMINISTRATOR.admin) == (False, True)


def test_who_administers_may_do_everything_whatever_the_rules_say() -> None:
    boss = Grants(user="anna", rules=(), admin=True)

    assert may(boss, "$errors") == {*ACTIONS, "see"}
    assert boss.may_subscribe("#", "anybody")


@pytest.mark.parametrize(
    ("wanted", "subscriber", "allowed"),
    [
        ("in", "anna", True),
        ("in", "anna-2", False),
        ("in", "job-2", True),
        ("in", "job-", True),
        ("in", "job", False),
        ("in", "Anna", False),
        ("in", "*", False),
        ("in", "", False),
        ("in", None, True),
        ("free", "anybody", True),
        ("any", "anybody", True),
        ("out", "anna", False),
        ("$share/job-1/in", "other", True),
        ("$share/other/in", "anna", False),
        ("$share/other/free", "anna", True),
    ],
)
def test_a_rule_may_name_the_subscribers_it_is_good_for(
    wanted: str, subscriber: str | None, allowed: bool
) -> None:
    grants = Grants(
        user="anna",
        rules=(
            Rule("subscribe", "in", ("anna", "job-*")),
            Rule("subscribe", "free"),
            Rule("subscribe", "any", ("*",)),
        ),
    )

    assert grants.may_subscribe(wanted, subscriber) is allowed


def test_what_two_rules_allow_apart_is_not_allowed_together() -> None:
    rules = (Rule("subscribe", "a", ("one",)), Rule("subscribe", "b", ("two",)))
    grants = Grants(user="anna", rules=rules)

    assert grants.may_subscribe("a", "one")
    assert not grants.may_subscribe("a", "two")


def test_a_refusal_names_the_subscriber_and_the_rule_it_needs() -> None:
    grants = Grants(user="anna", rules=(Rule("subscribe", "in", ("anna",)),))

    with pytest.raises(NotAllowed) as caught:
        grants.check_subscribe("in", "billing")

    assert str(caught.value) == (
        "user anna may not subscribe as billing to in: "
        "it needs the rule 'anna may subscribe in as billing'"
    )
    with pytest.raises(NotAllowed, match="^user anna may not subscribe to out$"):
        grants.check_subscribe("out", "billing")


def test_no_rule_at_all_allows_nothing() -> None:
    assert may(Grants(user="anna", rules=()), "t") == set()


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (Grants.check_publish, "user anna may not publish to other"),
        (Grants.check_subscribe, "user anna may not subscribe to other"),
        (Grants.check_read, "user anna may not read other"),
        (Grants.check_see, "user anna may not see other"),
    ],
)
def test_a_refusal_names_the_user_the_action_and_the_topic(
    check: object, said: str
) -> None:
    assert callable(check)
    with pytest.raises(NotAllowed) as caught:
        check(ANNA, "other")

    assert str(caught.value) == said
    assert (caught.value.name, caught.value.topic) == ("anna", "other")
    assert not caught.value.retriable
    check(OPEN, "other")


@pytest.mark.parametrize(
    ("granted", "wanted", "covered"),
    [
        ("#", "#", True),
        ("#", "a/+/b", True),
        ("+/#", "#", True),
        ("+", "#", False),
        ("a/#", "a", True),
        ("a/#", "a/#", True),
        ("a/#", "a/+/#", True),
        ("a/+/#", "a/#", False),
        ("a/+", "a/b", True),
        ("a/+", "a/+", True),
        ("a/+", "a/#", False),
        ("a/b", "a/+", False),
        ("a", "a/#", False),
        ("a/b", "a", False),
        ("+/temp", "room/temp", True),
        ("+/temp", "#", False),
        ("#", "$SYS/#", False),
        ("+/b", "$x/b", False),
        ("$SYS/#", "$SYS/broker/+", True),
        ("a//b", "a//b", True),
        ("a/+/b", "a//b", True),
    ],
)
def test_a_filter_is_covered_level_by_level(
    granted: str, wanted: str, covered: bool
) -> None:
    assert covers(granted, wanted) is covered
    grants = Grants(user="anna", rules=(Rule("subscribe", granted),))
    assert grants.may_subscribe(wanted) is covered


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        ("$share/group/a/b", True),
        ("$share/group/a/+", True),
        ("$share/a/x", False),
        ("$share/group/#", False),
        ("$share/a", False),
        ("$share/", False),
    ],
)
def test_of_a_shared_subscription_its_filter_counts(wanted: str, allowed: bool) -> None:
    grants = Grants(user="anna", rules=(Rule("subscribe", "a/+"),))

    assert grants.may_subscribe(wanted) is allowed


LEVELS = st.lists(st.sampled_from(["a", "b", "", "+", "$x"]), min_size=1, max_size=4)
FILTERS = st.builds(
    lambda levels, tail: "/".join([*levels, *tail]),
    LEVELS,
    st.sampled_from([[], ["#"]]),
) | st.just("#")


@given(granted=FILTERS, wanted=FILTERS)
def test_covered_is_what_matches_no_topic_that_was_not_granted(
    granted: str, wanted: str
) -> None:
    outside = [
        topic
        for topic in topics_of(wanted)
        if matches(wanted, topic) and not matches(granted, topic)
    ]

    assert covers(granted, wanted) is (not outside), outside


def topics_of(wanted: str) -> Iterator[str]:
    """Topics of a filter, with names that are in no other one."""
    levels = ["new" if level == "+" else level for level in wanted.split("/")]
    if levels[-1] != "#":
        yield "/".join(levels)
        return
    for tail in ([], ["new"], ["new", "new"]):
        if levels[:-1] or tail:
            yield "/".join([*levels[:-1], *tail])


NAMED = Rule("subscribe", "a", ("job", "job-*"))


@pytest.mark.parametrize(
    ("grants", "kept"),
    [
        (OPEN, {"job-1", "other", "anna", None}),
        (Grants(user="anna", rules=(), admin=True), {"job-1", "other", "anna", None}),
        (Grants(user="anna", rules=(NAMED,)), {"job-1", "anna", None}),
        (ANNA, {"job-1", "other", "anna", None}),
        (Grants(user="anna", rules=(Rule("publish", "a"),)), {"anna", None}),
        (Grants(user="anna", rules=(Rule("read", "a"),)), {"anna", None}),
    ],
)
def test_something_is_kept_under_names_that_rules_to_subscribe_cover(
    grants: Grants, kept: set[str | None]
) -> None:
    names = "job-1", "other", "anna", None

    assert {name for name in names if grants.may_keep(name)} == kept


def test_what_is_remembered_is_bounded_and_stays_true() -> None:
    grants = Grants(user="anna", rules=(Rule("publish", "in/+"),))

    for number in (*range(3 * MAX_KNOWN), 0, 1):
        assert grants.may_publish(f"in/{number}")
        assert not grants.may_publish(f"out/{number}")
        assert len(grants._known) <= MAX_KNOWN

    assert grants == Grants(user="anna", rules=(Rule("publish", "in/+"),))
    assert hash(grants) == hash(Grants(user="anna", rules=grants.rules))


def test_a_deep_filter_is_no_trouble() -> None:
    deep = "/".join("a" * 30_000)

    assert covers("a/#", deep)
    assert not covers(deep, f"{deep}/+")


def may(grants: Grants, topic: str) -> set[str]:
    found = {
        "publish": grants.may_publish(topic),
        "subscribe": grants.may_subscribe(topic),
        "read": grants.may_read(topic),
        "see": grants.may_see(topic),
    }
    return {action for action, allowed in found.items() if allowed}
