"""Whatever a broker raises, its clients raise: class, fields, text and hint."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import pytest

from penstock import errors
from penstock.client.session import NativeSession
from penstock.errors import PenstockError, ServerRefused
from penstock.gateway.native_pub import problem
from penstock.model.remote_errors import (
    KNOWN,
    MAX_FIELD_BYTES,
    public_fields,
    remote_error,
)
from penstock.wire.native import RequestRefused, Welcome, encode
from tests.unit.test_errors import CASES

if TYPE_CHECKING:
    from collections.abc import Mapping

BROKERS = [error for error, _ in CASES if type(error).__name__ in KNOWN]
OTHERS = [error for error, _ in CASES if type(error).__name__ not in KNOWN]
# What a program meets on its own side, or what says which side is to blame.
OWN = (
    errors.ProtocolError,
    errors.ClientError,
    errors.HandlerError,
    errors.SparkError,
    errors.PartFailed,
    errors.StoreError,
    errors.IngestError,
)


def name_of(error: object) -> str:
    return type(error).__name__


def received(data: bytes) -> ServerRefused:
    """What a client raises that gets these bytes as the answer to its question."""
    session = NativeSession()
    session.hello("", None, None)
    session.receive(encode(Welcome("1.0")))
    session.answer(0)
    seq = session.ask("topics", {})
    session.receive(data)
    with pytest.raises(ServerRefused) as caught:
        session.answer(seq)
    return caught.value


@pytest.mark.parametrize("error", BROKERS, ids=name_of)
def test_an_error_is_the_same_on_the_other_side(error: PenstockError) -> None:
    shown = error.without_paths()

    found = received(problem(1, error))

    assert isinstance(found, type(error))
    assert isinstance(found, ServerRefused)
    assert type(found).__name__ == found.error == type(error).__name__
    assert {name: getattr(found, name) for name in error.fields} == {
        name: getattr(shown, name) for name in error.fields
    }
    assert (str(found), found.hint) == (error.for_client, error.hint)
    assert found.retriable is error.retriable


@pytest.mark.parametrize("error", BROKERS, ids=name_of)
def test_an_error_is_told_on_as_it_was_told(error: PenstockError) -> None:
    once = received(problem(1, error))

    assert vars(received(problem(1, once))) == vars(once)


@pytest.mark.parametrize("error", BROKERS, ids=name_of)
def test_what_was_told_can_be_copied_and_sent_to_other_processes(
    error: PenstockError,
) -> None:
    found = received(problem(1, error))

    for other in (copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert type(other) is type(found)
        assert vars(other) == vars(found)
        assert other.args == found.args


@pytest.mark.parametrize("error", BROKERS, ids=name_of)
def test_a_server_that_tells_no_fields_is_understood(error: PenstockError) -> None:
    found = received(encode(RequestRefused(1, name_of(error), "no good", "do better")))

    assert isinstance(found, type(error))
    assert isinstance(found, ServerRefused)
    assert (str(found), found.hint) == ("no good", "do better")


def test_a_field_that_was_not_told_is_not_made_up() -> None:
    found = remote_error("OffsetOutOfRange", "offset 7 of topic t is outside 8..9")

    with pytest.raises(AttributeError, match="told no start of OffsetOutOfRange"):
        found.start  # type: ignore[attr-defined]  # noqa: B018 - it is of the other class


@pytest.mark.parametrize("error", OTHERS, ids=name_of)
def test_no_server_says_what_a_program_met_on_its_own_side(
    error: PenstockError,
) -> None:
    assert isinstance(error, OWN)

    found = received(problem(1, error))

    assert type(found) is ServerRefused
    assert (found.error, str(found)) == (type(error).__name__, error.for_client)


@pytest.mark.parametrize(
    "name",
    ["Unheard", "PenstockError", "ServerRefused", "annotations", "copy", "__doc__", ""],
)
def test_an_unknown_name_is_a_plain_refusal(name: str) -> None:
    found = received(encode(RequestRefused(1, name, "no good", "", {"topic": "t"})))

    assert type(found) is ServerRefused
    assert (found.error, str(found)) == (name, "no good")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("UnknownTopic", {"topic": 7}),
        ("UnknownTopic", {"topic": None}),
        ("UnknownTopic", {"topic": "x" * MAX_FIELD_BYTES}),
        ("UnknownTopic", {"topic": {"a": ["b"]}}),
        ("OffsetOutOfRange", {"topic": "t", "offset": "7"}),
        ("OffsetOutOfRange", {"offset": 1.5}),
        ("InvalidOption", {"value": ["a"]}),
        ("InvalidOption", {"value": b"\xff"}),
        ("IncompatibleSchema", {"problems": [["$", "a", "b"]]}),
        ("IncompatibleSchema", {"problems": [["$", "a"]] * MAX_FIELD_BYTES}),
        ("WrongMethod", {"allowed": "GET"}),
    ],
    ids=str,
)
def test_fields_that_make_no_sense_are_a_plain_refusal(
    name: str, fields: Mapping[str, object]
) -> None:
    found = received(encode(RequestRefused(1, name, "no good", "", dict(fields))))

    assert type(found) is ServerRefused
    assert vars(found) == {"error": name, "text": "no good", "hint": ""}


@pytest.mark.parametrize(
    "name", ["args", "__class__", "__dict__", "text", "hint", "retriable", "later"]
)
def test_a_field_that_the_class_does_not_have_is_passed_over(name: str) -> None:
    told: dict[str, object] = {"topic": "t", name: "other"}

    found = received(encode(RequestRefused(1, "UnknownTopic", "no good", "", told)))

    assert isinstance(found, errors.UnknownTopic)
    assert vars(found) == {
        "error": "UnknownTopic",
        "text": "no good",
        "hint": "",
        "topic": "t",
    }


def test_no_field_of_a_known_class_hides_one_of_a_refusal() -> None:
    hidden = {"error", "text", "args"}

    assert not [kind for kind in KNOWN.values() if hidden.intersection(kind.fields)]


@pytest.mark.parametrize(
    "value", [object(), b"bytes", "x" * MAX_FIELD_BYTES, 1 << 70, "\ud800", [object()]]
)
def test_a_value_that_cannot_be_told_is_left_out(value: object) -> None:
    error = errors.InvalidOption("window", value, "a number")

    assert public_fields(error) == {"name": "window", "limit": "a number"}


def test_no_path_is_told() -> None:
    error = errors.DiskFull("/srv/data/journal/0.jnl", "writing", "No space left")

    assert public_fields(error)["file"] == "a file of the server"
    assert error.file == "/srv/data/journal/0.jnl"


def test_a_program_is_turned_away_by_the_class_of_the_limit() -> None:
    session = NativeSession()
    session.hello("", None, None)

    with pytest.raises(errors.LimitReached, match="there are 5 connections") as caught:
        session.receive(b"error: there are 5 connections, the limit\r\n")

    assert isinstance(caught.value, ServerRefused)
