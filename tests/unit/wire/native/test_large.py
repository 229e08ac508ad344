from __future__ import annotations

import msgspec
import pytest

from penstock.errors import RemoteProtocolError
from penstock.wire.native import Finish, Publish, Settle, Stage
from penstock.wire.native.codec import MAX_PUBLISHES, MAX_VALUES, check_large

HALF = MAX_VALUES // 2
PAYLOADS = [b""]


def check(message: object) -> None:
    check_large(msgspec.msgpack.encode(message))


@pytest.mark.parametrize(
    "message",
    [
        Publish(1, "t", [b"x"] * MAX_VALUES),
        Publish(1, "t", [b"x"] * HALF, keys=[None] * HALF),
        Publish(1, "t", [b"x"] * 3, headers=[{}, {"a": "1"}, {"b": "2"}]),
        Publish(1, "t", [b"x"] * HALF, units=[1] * HALF),
        Stage(1, "q", 0, 0, 0, Publish(0, "t", [b"x"] * 20, ids=["a"] * 20)),
        Finish(1, 1, [1], [Publish(0, "t", PAYLOADS)] * MAX_PUBLISHES),
        Settle(1, [1, 2]),
    ],
    ids=["events", "columns", "headers", "units", "stage", "finish", "no events"],
)
def test_as_many_values_as_are_bearable_are_let_through(message: object) -> None:
    check(message)


@pytest.mark.parametrize(
    "message",
    [
        Publish(1, "t", [b""] * (MAX_VALUES + 1)),
        Publish(1, "t", [b""] * (HALF + 1), headers=[{}] * (HALF + 1)),
        Publish(1, "t", PAYLOADS, headers=[{str(n): "" for n in range(MAX_VALUES)}]),
        Publish(1, "t", PAYLOADS, units=[1] * MAX_VALUES),
        Stage(1, "q", 0, 0, 0, Publish(0, "t", [b""] * (MAX_VALUES + 1))),
        Finish(1, 1, [1], [Publish(0, "t", [b""] * HALF)] * 3),
    ],
    ids=["events", "columns", "headers", "units", "stage", "finish"],
)
def test_more_values_than_are_bearable_are_refused(message: object) -> None:
    with pytest.raises(RemoteProtocolError, match=f"values .* exceed {MAX_VALUES}"):
        check(message)


def test_more_publishes_than_are_bearable_are_refused() -> None:
    one = Publish(0, "t", [])

    with pytest.raises(msgspec.ValidationError, match=str(MAX_PUBLISHES)):
        check(Finish(1, 1, [], [one] * (MAX_PUBLISHES + 1)))


def test_columns_have_as_many_values_as_there_are_payloads() -> None:
    with pytest.raises(RemoteProtocolError, match="Publish: 2 headers for 1 payloads"):
        check(Publish(1, "t", PAYLOADS, headers=[{}, {}]))
