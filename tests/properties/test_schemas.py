"""Made-up data fits its schema, and what is called compatible is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from penstock.errors import UnsupportedSchema
from penstock.schema import Checker, canonical, mock, problems
from tests.properties.schema_strategies import changed, schemas

PATIENT = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@PATIENT
@given(schemas(), st.integers(0, 1000))
def test_made_up_documents_fit_their_schema(schema: dict[str, Any], seed: int) -> None:
    checker = Checker(canonical(schema))

    for payload in payloads(schema, seed):
        assert checker.misfit(payload) is None


@PATIENT
@given(st.data(), schemas(), st.integers(0, 1000))
def test_what_is_compatible_can_be_read(
    data: st.DataObject, old: dict[str, Any], seed: int
) -> None:
    new = data.draw(changed(old))
    pairs = [
        (reader, writer)
        for reader, writer in ((new, old), (old, new))
        if not problems(reader, writer)
    ]
    event(f"compatible in {len(pairs)} directions")

    for reader, writer in pairs:
        checker = Checker(canonical(reader))
        for payload in payloads(writer, seed):
            note(f"reader {reader}\nwriter {writer}\npayload {payload!r}")
            assert checker.misfit(payload) is None


@PATIENT
@given(schemas())
def test_every_schema_can_read_what_it_writes(schema: dict[str, Any]) -> None:
    assert problems(schema, msgspec.json.decode(canonical(schema))) == []


def payloads(schema: dict[str, Any], seed: int) -> Iterator[bytes]:
    """Some documents; none if there are none, or none that can be made up."""
    try:
        for document in mock(schema, seed, 5):
            yield msgspec.json.encode(document)
    except UnsupportedSchema:
        return
