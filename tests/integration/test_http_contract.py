"""Requests made up from the OpenAPI document, against a running server.

Whatever is asked, well-formed or not: no answer is a mistake of the server, and every
answer is one that the document knows. The examples are the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http_client import Http, token_of
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

# For each of some sixty operations.
EXAMPLES = {"fast": 5, "deep": 40}
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
# What lasts is tested with clients of its own.
LASTING = ("/stream", "/socket", "/pull", "/live")
# Names that lead somewhere, for every second request.
KNOWN = {"topic": "orders", "subscriber": "shop", "number": 0, "id": "e1", "offset": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("contract")
    with serving(folder, "--no-line", "--no-json", "--no-maze") as server:
        _fill(Http(server))
        yield server


def _fill(client: Http) -> None:
    """A topic with events, a schema, notes, and a dead letter."""
    client.ask("POST", "/v1/topics", {"name": "orders"})
    path = "/v1/topics/orders"
    client.ask("PUT", f"{path}/schema", {"schema": {"type": "object"}})
    client.ask("POST", f"{path}/events", [{"payload": {"n": 1}, "id": "e1"}])
    client.ask("POST", f"{path}/comments", {"text": "so far, so good"})
    pull = "/v1/subscriptions/shop/orders/pull"
    client.ask("POST", pull, {"start": "earliest", "tries": 1, "wait_s": 1})
    nack = {"offset": 0, "error": "no", "final": True}
    client.ask("POST", pull, {"nack": [nack], "wait_s": 0})
    assert client.ask("GET", "/v1/dead-letters").json()["letters"], "one is there"


def test_every_answer_is_one_that_the_document_knows(server: Serving) -> None:
    base_url = f"http://127.0.0.1:{server.ports['http']}"
    schema = schemathesis.openapi.from_url(f"{base_url}/openapi.json")
    found = list(schema.get_all_operations())
    operations = [one.ok() for one in found if isinstance(one, Ok)]
    asked = [one for one in operations if not one.path.endswith(LASTING)]

    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {token_of(server)}"
        for operation in asked:
            _ask_often(operation, base_url, session)

    assert len(operations) == len(found)
    assert len(asked) > 50
    assert Http(server).ask("GET", "/readyz").status == 200
    assert "Traceback" not in server.log.read_text()


def _ask_often(operation: Any, base_url: str, session: requests.Session) -> None:
    profile = hypothesis.settings.get_current_profile_name()
    well_formed = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    any_form = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @hypothesis.settings(
        max_examples=EXAMPLES.get(profile, EXAMPLES["fast"]),
        derandomize=profile == "fast",
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(well_formed, any_form), st.booleans())
    def ask(case: Any, known: bool) -> None:
        if known:
            for name in case.path_parameters or {}:
                case.path_parameters[name] = KNOWN.get(name, "other")
        case.call_and_validate(
            base_url=base_url, session=session, checks=CHECKS, timeout=30
        )

    ask()
