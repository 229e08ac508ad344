from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from penstock.errors import InvalidQuery
from penstock.spark.sql import refused, topic_in

TOPICS = ["orders", "orders.eu", "Users", "users", "a`b"]


@pytest.mark.parametrize(
    ("relation", "topic"),
    [
        ("`orders`", "orders"),
        ("`ORDERS`", "orders"),
        ("`Users`", "Users"),
        ("`orders.eu`", "orders.eu"),
        ("`a``b`", "a`b"),
    ],
)
def test_a_missing_table_is_a_topic(relation: str, topic: str) -> None:
    assert topic_in({"relationName": relation}, TOPICS) == topic


def test_a_name_of_two_parts_wants_backticks() -> None:
    with pytest.raises(InvalidQuery, match="no table orders.eu") as caught:
        topic_in({"relationName": "`orders`.`eu`"}, TOPICS)

    assert caught.value.hint == "write `orders.eu`"


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (TOPICS, "did you mean orders, orders.eu?"),
        (["x", "y"], "topics are x, y"),
        ([f"x{n}" for n in range(9)], "topics are x0, x1, x2, x3, x4, …"),
        ([], "there are no topics yet"),
    ],
)
def test_one_that_is_none_gets_a_suggestion(names: list[str], hint: str) -> None:
    with pytest.raises(InvalidQuery, match="no topic order$") as caught:
        topic_in({"relationName": "`order`"}, names)

    assert caught.value.hint == hint


def test_of_two_that_differ_in_case_neither_is_guessed() -> None:
    with pytest.raises(InvalidQuery, match="no topic USERS"):
        topic_in({"relationName": "`USERS`"}, TOPICS)


def test_errors_of_spark_are_cut_to_what_people_can_use() -> None:
    text = "[NO_COLUMN] no column x. SQLSTATE: 42703; line 1\n\nJVM stacktrace:\nat x"

    assert str(refused(AnalysisException(text))) == "[NO_COLUMN] no column x.; line 1"


def test_an_error_of_ours_speaks_for_itself() -> None:
    text = """worker failed
Traceback (most recent call last):
penstock.errors.NotRunning: nothing listens there

more"""

    assert str(refused(PySparkException(text))) == "nothing listens there"
