from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from penstock.http.access import Access
from penstock.http.call import Special
from penstock.http.routes import ROUTES, SPECIAL
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    found: list[Any] = []

    async def scene(folder: Path) -> None:
        async with http_house(folder) as house:
            answer = await house.ask("GET", "/openapi.json", token=None)
            assert answer.status == 200
            found.append(answer.json())

    run(scene(tmp_path_factory.mktemp("openapi")))
    return found[0]


@pytest.mark.slow
def test_the_document_is_valid(document: Any) -> None:
    OpenAPIV31SpecValidator(document).validate()


def test_every_route_is_in_it(document: Any) -> None:
    said = {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
    }

    known = {(one.method, one.path) for one in ROUTES}
    known |= {
        (one.method if isinstance(one, Special) else "GET", one.path) for one in SPECIAL
    }
    assert said == known | {("GET", "/openapi.json")}


def operations(document: Any) -> list[Any]:
    return [one for methods in document["paths"].values() for one in methods.values()]


def test_operations_have_names_of_their_own(document: Any) -> None:
    names = [one["operationId"] for one in operations(document)]

    assert len(names) == len(set(names))


def test_every_operation_says_what_it_is_and_what_it_answers(document: Any) -> None:
    for one in operations(document):
        assert one["summary"], one
        assert any(status[0] in "12" for status in one["responses"]), one
        assert one["tags"]


def test_what_needs_no_token_says_so(document: Any) -> None:
    free = {
        path
        for path, methods in document["paths"].items()
        for one in methods.values()
        if one.get("security") == []
    }

    known = {one.path for one in SPECIAL if one.access is Access.NONE}
    assert free == known | {"/openapi.json"}


def test_arguments_are_where_a_request_has_them(document: Any) -> None:
    paths = document["paths"]
    topics = {one["name"]: one for one in paths["/v1/topics"]["get"]["parameters"]}
    letters = {one["name"] for one in paths["/v1/dead-letters"]["get"]["parameters"]}
    seek = paths["/v1/subscriptions/{subscriber}/{topic}/seek"]["post"]

    assert topics["limit"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000,
        "default": 1000,
    }
    assert {"subscriber", "since_ms", "status", "limit"} <= letters
    assert "filter" not in letters
    assert [one["name"] for one in seek["parameters"]] == ["subscriber", "topic"]
    assert seek["requestBody"]["required"]


def test_nobody_says_who_asks(document: Any) -> None:
    for one in operations(document):
        names = {given["name"] for given in one.get("parameters", ())}
        if "audit" not in one["operationId"]:
            assert "by" not in names
    schema = document["components"]["schemas"]["TopicsComment"]
    assert set(schema["properties"]) == {"text"}
