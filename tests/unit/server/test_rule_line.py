from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.access.grants import ACTIONS, GrantedAction, Rule
from penstock.errors import InvalidName
from penstock.server.rule_line import (
    ADMINISTER,
    LineMeaning,
    is_rule,
    made,
    parse,
    rendered,
)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("anna may publish sensors/#", ("anna", Rule("publish", "sensors/#"))),
        (" anna\tmay  read  a  b \r", ("anna", Rule("read", "a  b"))),
        ("may may subscribe may", ("may", Rule("subscribe", "may"))),
        ("anna may nothing", ("anna", None)),
        ("anna may administer", ("anna", ADMINISTER)),
        (
            "anna may subscribe orders/# as billing-*",
            ("anna", Rule("subscribe", "orders/#", ("billing-*",))),
        ),
        (
            "anna may subscribe a as b  as anna, job 7 ,*\r",
            ("anna", Rule("subscribe", "a as b", ("anna", "job 7", "*"))),
        ),
        ("anna may subscribe as as", ("anna", Rule("subscribe", "as as"))),
        ("anna may read a as b", ("anna", Rule("read", "a as b"))),
    ],
)
def test_a_rule_is_read(line: str, found: tuple[str, LineMeaning]) -> None:
    assert is_rule(line)
    assert parse(line) == found


@pytest.mark.parametrize(
    "line", ["anna:scrypt$2", "anna", "", "anna maybe", "an na:may", "anna:may x"]
)
def test_other_lines_are_no_rules(line: str) -> None:
    assert not is_rule(line)


@pytest.mark.parametrize(
    "line", ["anna may", "anna may read", "anna may write x", "anna may nothing much"]
)
def test_a_rule_that_says_nothing_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="after may comes publish, subscribe, read"):
        parse(line)


@pytest.mark.parametrize(
    "filter_",
    ["", "a/#/b", "a+", " a", "a ", "a\nb", "a\tb", "\0", "$share/g/a", "$share/g"],
)
def test_a_filter_that_no_line_can_hold_is_refused(filter_: str) -> None:
    with pytest.raises(InvalidName, match="topic filter"):
        made("read", filter_)


@pytest.mark.parametrize(
    "names", [[""], ["a", ""], ["a,b"], ["a*b"], ["**"], ["a\nb"], ["a as b"], [" "]]
)
def test_a_name_that_no_line_can_hold_is_refused(names: list[str]) -> None:
    with pytest.raises(InvalidName, match="subscriber name"):
        made("subscribe", "a", names)


FILTERS = st.text(max_size=20) | st.lists(st.sampled_from(["as", "a", "#"])).map(
    " ".join
)
NAMES = st.none() | st.lists(st.text(max_size=5), min_size=1, max_size=3)


@given(st.sampled_from(ACTIONS), FILTERS, NAMES)
def test_whatever_is_written_is_read_back(
    action: GrantedAction, filter_: str, names: list[str] | None
) -> None:
    try:
        rule = made(action, filter_, names if action == "subscribe" else None)
    except InvalidName:
        return

    line = rendered("anna", rule)

    assert is_rule(line)
    assert parse(line) == ("anna", rule)
    assert "\n" not in line


def test_nothing_and_the_role_are_written_as_they_are_read() -> None:
    assert parse(rendered("anna", None)) == ("anna", None)
    assert parse(rendered("anna", ADMINISTER)) == ("anna", ADMINISTER)
