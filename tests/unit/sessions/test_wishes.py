from __future__ import annotations

import msgspec
import pytest

from penstock.errors import InvalidName
from penstock.sessions.wishes import Will, Wish


@pytest.mark.parametrize(
    ("filter_", "share", "plain"),
    [
        ("a/+/c", None, "a/+/c"),
        ("$share/g/a/#", ("g", "a/#"), "a/#"),
        ("$shared/g/a", None, "$shared/g/a"),
    ],
)
def test_a_wish_knows_whether_it_is_shared(
    filter_: str, share: tuple[str, str] | None, plain: str
) -> None:
    wish = Wish(filter_, 1)

    assert (wish.share, wish.plain) == (share, plain)


@pytest.mark.parametrize("filter_", ["$share/g", "$share//a", "$share/a+/b"])
def test_a_shared_wish_without_a_group_or_filter_is_none(filter_: str) -> None:
    with pytest.raises(InvalidName):
        _ = Wish(filter_, 1).share


@pytest.mark.parametrize(
    "one",
    [
        Wish("a/#", 2, True, True, 268_435_455),
        Wish("a", 0),
        Will("t", b"\xff", 2, True, {"a": "b"}, 5.0, 60.0, 3),
        Will("t", b"", 0, False, {}),
    ],
)
def test_wishes_and_wills_are_written_whole(one: Wish | Will) -> None:
    data = msgspec.msgpack.encode(one)

    assert msgspec.msgpack.decode(data, type=type(one)) == one
