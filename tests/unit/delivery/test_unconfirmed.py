from __future__ import annotations

from penstock.delivery.unconfirmed import Unconfirmed


def changed(*changes: str) -> Unconfirmed[str]:
    unconfirmed: Unconfirmed[str] = Unconfirmed()
    for change in changes:
        unconfirmed.add(change)
    return unconfirmed


def test_open_changes_wait_for_a_group() -> None:
    assert changed("a")
    assert not changed()


def test_closing_hands_the_changes_over_once() -> None:
    changes = changed("a", "b")

    assert changes.close() == ["a", "b"]
    assert changes.close() == []
    assert not changes


def test_failed_group_takes_everything_back_the_newest_first() -> None:
    changes = changed("a", "b")
    changes.close()
    changes.add("c")

    assert changes.take_back() == ["c", "b", "a"]
    assert changes.take_back() == []
    assert changes.confirmed


def test_committed_changes_are_not_taken_back() -> None:
    changes = changed("a")
    changes.close()
    changes.add("b")

    assert changes.confirm() == ["a"]
    assert not changes.confirmed
    assert changes.take_back() == ["b"]


def test_changes_are_confirmed_when_none_could_be_taken_back() -> None:
    changes = changed("a")

    assert not changes.confirmed
    changes.close()
    assert not changes.confirmed
    changes.confirm()
    assert changes.confirmed
