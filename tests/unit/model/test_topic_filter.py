from __future__ import annotations

import pytest

from penstock.errors import InvalidName
from penstock.model.topic_filter import (
    MAX_FILTER_BYTES,
    check_filter,
    matches,
    overlap,
    shared,
)


@pytest.mark.parametrize(
    "text",
    [
        *("#", "+", "/", "a", "a/#", "a/+", "+/+", "/+", "+/a/#", "/#", "+/#", "a//b"),
        *("$SYS/#", "$SYS/+/x", "a b", "é", "x" * MAX_FILTER_BYTES, "/" * 65_535),
    ],
)
def test_these_are_filters(text: str) -> None:
    check_filter(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("a\0", "contains a NUL character"),
        ("a#", "has a # that is not the whole last level"),
        ("a/#/b", "has a # that is not the whole last level"),
        ("#/", "has a # that is not the whole last level"),
        ("a/b#", "has a # that is not the whole last level"),
        ("##", "has a # that is not the whole last level"),
        ("+#", "has a # that is not the whole last level"),
        ("a+", "has a + that is not a whole level"),
        ("a/+b/c", "has a + that is not a whole level"),
        ("++", "has a + that is not a whole level"),
        ("\ud800", "is not valid Unicode text"),
        ("é" * 32_768, "has 65536 bytes, limit 65535"),
    ],
)
def test_these_are_not(text: str, reason: str) -> None:
    with pytest.raises(InvalidName) as refused:
        check_filter(text)

    assert (refused.value.kind, refused.value.reason) == ("topic filter", reason)


@pytest.mark.parametrize(
    ("filter", "names"),
    [
        # The examples of the specification, 4.7.
        ("sport/tennis/player1/#", "sport/tennis/player1"),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking"),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon"),
        ("sport/#", "sport"),
        ("#", "anything/at/all"),
        ("sport/tennis/+", "sport/tennis/player1"),
        ("sport/+", "sport/"),
        ("+/+", "/finance"),
        ("/+", "/finance"),
        ("$SYS/#", "$SYS/a"),
        ("$SYS/#", "$SYS"),
        ("$SYS/monitor/+", "$SYS/monitor/Clients"),
        ("a//b", "a//b"),
        ("a/+/b", "a//b"),
        ("#", ""),
        ("+", ""),
        ("a/$x/+", "a/$x/b"),
        ("a/+", "a/$x"),
    ],
)
def test_filters_match(filter: str, names: str) -> None:
    assert matches(filter, names)


@pytest.mark.parametrize(
    ("filter", "name"),
    [
        ("sport/tennis/+", "sport/tennis/player1/ranking"),
        ("sport/+", "sport"),
        ("+", "/finance"),
        ("#", "$SYS/a"),
        ("+/monitor/Clients", "$SYS/monitor/Clients"),
        ("+", "$SYS"),
        ("ACCOUNTS", "Accounts"),
        ("/finance", "finance"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("a/b/#", "a"),
    ],
)
def test_filters_do_not_match(filter: str, name: str) -> None:
    assert not matches(filter, name)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("$share/g/a/+", ("g", "a/+")),
        ("$share/g/#", ("g", "#")),
        ("$share/g//", ("g", "/")),
        ("$share/g/$SYS/x", ("g", "$SYS/x")),
        ("a/b", None),
        ("$share", None),
        ("$shared/g/a", None),
        ("$SHARE/g/a", None),
    ],
)
def test_shared_filters_name_a_group(text: str, parts: tuple[str, str] | None) -> None:
    assert shared(text) == parts


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$share/", "names no group to share with"),
        ("$share//a", "names no group to share with"),
        ("$share/g", "has no filter behind its group"),
        ("$share/g/", "has no filter behind its group"),
        ("$share/g+/a", "has a wildcard in the name of its group"),
        ("$share/#/a", "has a wildcard in the name of its group"),
        ("$share/g/a#", "has a # that is not the whole last level"),
    ],
)
def test_ill_formed_shared_filters_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidName) as refused:
        shared(text)

    assert (refused.value.kind, refused.value.reason) == ("topic filter", reason)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a", "a/b", False),
        ("a/b", "a/+", True),
        ("a/+", "+/b", True),
        ("a/+/c", "+/b/d", False),
        ("#", "a/b", True),
        ("a/#", "a", True),
        ("a/#", "b", False),
        ("a/#", "a/b/c", True),
        ("a/#", "+/b", True),
        ("a/+", "a", False),
        ("a/+/#", "a", False),
        ("a/+/#", "a/b", True),
        ("a/b", "a/b/#", True),
        ("#", "#", True),
        ("#", "$SYS/a", False),
        ("+/a", "$SYS/a", False),
        ("$SYS/#", "$SYS/a", True),
        ("+", "#", True),
    ],
)
def test_filters_overlap_if_a_name_matches_both(
    one: str, other: str, *, both: bool
) -> None:
    assert overlap(one, other) is both
    assert overlap(other, one) is both
