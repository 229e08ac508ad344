from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.responses import Response

from penstock import errors
from penstock.errors import PenstockError
from penstock.http.problem import STATUS, failure, problem_of, refusal, status_of
from tests.unit.test_errors import CASES

# What never reaches a request: it is about files, programs, other protocols.
ELSEWHERE = (
    errors.ConfigError,
    errors.ClientError,
    errors.HandlerError,
    errors.SparkError,
    errors.StoreError,
    errors.IngestError,
    errors.PartFailed,
    errors.LocalProtocolError,
    errors.CorruptRecord,
    errors.UnsupportedVersion,
    errors.UnownedRecords,
    errors.DirectoryLocked,
    errors.NotADataDirectory,
    errors.Moved,
)


def body(answer: Response) -> Any:
    return json.loads(bytes(answer.body))


@pytest.mark.parametrize(
    "error",
    [
        error
        for error, _ in CASES
        if not isinstance(error, ELSEWHERE) or type(error) in STATUS
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_that_a_request_may_meet_has_a_status(error: PenstockError) -> None:
    answer = refusal(error)

    told = body(answer)
    assert 400 <= answer.status_code < 600
    assert answer.status_code != 500
    assert answer.media_type == "application/problem+json"
    assert told["status"] == answer.status_code
    assert told["error"] == type(error).__name__
    assert told["type"] == f"urn:penstock:error:{type(error).__name__}"
    assert told["detail"] == error.for_client
    assert told.get("hint", "") == error.hint


def test_an_error_that_nobody_expects_is_a_mistake_of_ours() -> None:
    assert status_of(errors.CorruptRecord("f", 0, 1, "bad")) == 500


def test_a_full_disk_is_more_than_a_write_that_failed() -> None:
    assert status_of(errors.WriteFailed("f", "write", "x")) == 503
    assert status_of(errors.DiskFull("f", "write", "x")) == 507


@pytest.mark.parametrize(
    ("error", "field", "value", "limit"),
    [
        (errors.InvalidOption("window", 0, "at least 1"), "window", "0", "at least 1"),
        (
            errors.InvalidBatch("priority", 300, "0 to 255"),
            "priority",
            "300",
            "0 to 255",
        ),
        (errors.InvalidName("a\0", "has a NUL"), "topic name", "a\0", "has a NUL"),
        (errors.TooLarge("the body", 9, 8, "http.x"), "the body", "9", "8"),
        (errors.OffsetOutOfRange("t", 9, 0, 5), "", "9", "0..5"),
        (
            errors.InvalidArgument("topics", "expected `int` (argument `limit`)"),
            "limit",
            "",
            "expected `int` (argument `limit`)",
        ),
        (
            errors.InvalidArgument("topics", "too much (argument `limit`)", "2000"),
            "limit",
            "2000",
            "too much (argument `limit`)",
        ),
        (
            errors.InvalidArgument("x", "argument `offset` is 'a': must be a number"),
            "offset",
            "'a'",
            "argument `offset` is 'a': must be a number",
        ),
        (errors.LimitReached("topics", 5, "max_topics"), "", "", "5"),
    ],
)
def test_field_value_and_limit_are_named(
    error: PenstockError, field: str, value: str, limit: str
) -> None:
    problem = problem_of(error)

    assert (problem.field, problem.value, problem.limit) == (field, value, limit)


def test_a_long_value_is_not_repeated_in_full() -> None:
    problem = problem_of(errors.InvalidOption("x", "y" * 10_000, "short"))

    assert len(problem.value) == 200


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (errors.LoginRefused("no"), "www-authenticate", 'Bearer realm="penstock"'),
        (errors.WrongMethod("PUT", "/", ("GET", "HEAD")), "allow", "GET, HEAD"),
        (errors.TooManyAttempts("a", 1, 12.3), "retry-after", "13"),
        (errors.Backlogged(1, 1), "retry-after", "1"),
        (errors.WrongMediaType("x", ("a/b", "c/d")), "accept", "a/b, c/d"),
    ],
)
def test_headers_say_what_to_do(error: PenstockError, name: str, value: str) -> None:
    assert refusal(error).headers[name] == value


def test_a_mistake_of_ours_tells_nothing_of_its_cause() -> None:
    answer = failure()

    assert answer.status_code == 500
    assert body(answer)["error"] == "InternalError"


def test_a_problem_has_the_fields_of_its_error_and_no_path() -> None:
    out_of_range = problem_of(errors.OffsetOutOfRange("t", 7, 8, 9))
    full = problem_of(errors.DiskFull("/srv/data/journal", "writing", "no space"))

    assert out_of_range.fields == {"topic": "t", "offset": 7, "start": 8, "end": 9}
    assert full.fields["file"] == "a file of the server"
    assert b"fields" not in bytes(refusal(errors.Ending()).body)
