from __future__ import annotations

import pytest

from penstock.errors import InvalidOption
from penstock.supervisor.checks import check_master, check_store, check_trigger


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[1]", "local[16]", "local[*]", "local[2,3]", "local[2, 3]"),
        *("spark://host:7077", "spark://a.b-c:1,d:2", "spark://[::1]:7077"),
        *("local-cluster[2,1,1024]", "local-cluster[2, 1, 1024]"),
    ],
)
def test_masters_that_spark_knows_are_taken(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master",
    [
        *("", "locl", "local[0]", "local[]", "local[2", "spark://", "spark://h"),
        *("yarn h", "local-cluster", "local-cluster[2]", "local-cluster[2,1,0]"),
    ],
)
def test_any_other_master_is_refused(master: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        check_master(master)

    assert f"option --master is {master!r}: must be local" in str(caught.value)
    assert "spark://HOST:PORT" in str(caught.value)


def test_a_trigger_has_to_leave_time_for_a_batch() -> None:
    check_trigger(0.01)
    with pytest.raises(InvalidOption) as caught:
        check_trigger(0.001)

    assert str(caught.value) == "option --trigger is '0.001s': must be at least 10ms"


@pytest.mark.parametrize(
    "url", ["postgresql://me:secret@h/db", "mongodb://127.0.0.1:1/db?replicaSet=rs0"]
)
def test_a_store_need_not_be_there_to_be_one(url: str) -> None:
    check_store(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://me:secret@h/db", "mysql://h/db"),
        ("postgresql://me:secret@h:port/db", "postgresql://h:port/db"),
        ("mongodb://me:sec/ret@h", "mongodb://h"),
        ("mongodb://h", "mongodb://h"),
        ("nowhere", "(no URL)"),
    ],
)
def test_any_other_store_is_refused_with_no_password(url: str, shown: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        check_store(url)

    assert f"option --store is {shown!r}: must be postgresql://" in str(caught.value)
    assert "ret" not in str(caught.value)
