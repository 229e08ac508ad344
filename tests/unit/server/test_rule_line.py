from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.access import ACTIONS, Rule
from penstock.errors import InvalidName
from penstock.server.rule_line import is_rule, made, parse, rendered


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("anna may publish sensors/#", ("anna", Rule("publish", "sensors/#"))),
        (" anna\tmay  read  a  b \r", ("anna", Rule("read", "a  b"))),
        ("may may subscribe may", ("may", Rule("subscribe", "may"))),
        ("anna may nothing", ("anna", None)),
    ],
)
def test_a_rule_is_read(line: str, found: tuple[str, Rule | None]) -> None:
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


@given(st.sampled_from(ACTIONS), st.text(max_size=20))
def test_whatever_is_written_is_read_back(action: str, filter_: str) -> None:
    assert action in ACTIONS
    try:
        rule = made(action, filter_)
    except InvalidName:
        return

    line = rendered("anna", rule)

    assert is_rule(line)
    assert parse(line) == ("anna", rule)
    assert "\n" not in line


def test_nothing_is_written_as_it_is_read() -> None:
    assert parse(rendered("anna", None)) == ("anna", None)
