"""Schemas that were made to keep a server busy: refused in a bounded number of steps.

The requests are those of an attack on a running server, each of which took seconds to
hours. Here each is refused, or answered, and others are served as before: a request
that took as long as it did would run into the limit of every test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.access.grants import Rule
from penstock.client import Client, connect
from penstock.errors import ServerRefused
from penstock.schema.check import MAX_CHECKS
from penstock.server.users_file import set_password, set_rules
from tests.http_client import Http
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow


def doubling(levels: int, keyword: str) -> dict[str, Any]:
    """Each level refers to the one below twice."""
    defs: dict[str, Any] = {"a0": {"type": "integer"}}
    for level in range(1, levels + 1):
        defs[f"a{level}"] = {keyword: [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    return {"$defs": defs, "$ref": f"#/$defs/a{levels}"}


def anchored(levels: int) -> dict[str, Any]:
    """The same, by anchors."""
    defs: dict[str, Any] = {"a0": {"$anchor": "a0", "type": "integer"}}
    for level in range(1, levels + 1):
        below = [{"$ref": f"#a{level - 1}"}] * 2
        defs[f"a{level}"] = {"$anchor": f"a{level}", "allOf": below}
    return {"$defs": defs, "$ref": f"#a{levels}"}


def named(levels: int) -> dict[str, Any]:
    """The same, by ids."""
    defs: dict[str, Any] = {"a0": {"$id": "http://x/d/a0", "type": "integer"}}
    for level in range(1, levels + 1):
        below = [{"$ref": f"a{level - 1}"}] * 2
        defs[f"a{level}"] = {"$id": f"http://x/d/a{level}", "allOf": below}
    return {"$id": "http://x/", "$defs": defs, "$ref": f"d/a{levels}"}


def tagged(count: int) -> dict[str, Any]:
    """A union whose branches are compared each with each."""
    branches = [
        {"type": "object", "properties": {"t": {"const": f"t{n}"}}, "required": ["t"]}
        for n in range(count)
    ]
    return {"oneOf": branches}


TREE = {
    "$defs": {
        "Any": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
        "A": {"properties": {"of": {"$ref": "#/$defs/Any"}, "t": {"const": "A"}}},
        "B": {"properties": {"of": {"$ref": "#/$defs/Any"}, "t": {"const": "B"}}},
    },
    "type": "object",
    "$ref": "#/$defs/Any",
}

HEAVY = {
    "doubling": doubling(28, "allOf"),
    "alternatives": doubling(28, "anyOf"),
    "anchors": anchored(28),
    "ids": named(28),
    "patterns": {"anyOf": [{"pattern": f"\\p{{L}}{{{n}}}"} for n in range(200, 900)]},
    "one pattern": {"pattern": r"(\p{L}{100}){100}"},
}

NOT_TO_BE_MADE = {
    "unique": {
        "type": "array",
        "items": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2},
        "uniqueItems": True,
        "minItems": 1000,
    },
    "flags": {
        "type": "array",
        "items": {"type": "boolean"},
        "uniqueItems": True,
        "minItems": 3,
    },
    "length": {"type": "string", "pattern": "^(ab){1,3}$", "minLength": 7},
    "odd length": {
        "type": "string",
        "pattern": "^(ab)*$",
        "minLength": 7,
        "maxLength": 7,
    },
    "items": {"type": "array", "minItems": 1_000_000_000},
    "characters": {"type": "string", "minLength": 1_000_000_000},
    "nested": {
        "type": "array",
        "minItems": 500,
        "items": {"type": "array", "minItems": 500, "items": {"type": "string"}},
    },
}

TO_BE_MADE = {
    "long": {"type": "string", "pattern": "^[a-z]+$", "minLength": 500},
    "short": {"type": "string", "pattern": "^[a-z]{1,900}$", "maxLength": 3},
    "branches": {"type": "string", "pattern": "^(a|b{40})$", "minLength": 40},
    "all of them": {
        "type": "array",
        "items": {"enum": [1, 2, 3]},
        "uniqueItems": True,
        "minItems": 3,
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("anna", "boss"):
        set_password(folder / "users", name, "secret")
    set_rules(folder / "users", "anna", (Rule("publish", "t"), Rule("subscribe", "t")))
    set_rules(folder / "users", "boss", (), admin=True)
    flags = ("--users-file", str(folder / "users"), "--no-maze")
    with serving(folder, *flags) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def native(server: Serving, user: str = "boss") -> Client:
    where = f"127.0.0.1:{server.ports['native']}"
    return connect(where, user=user, password="secret")


def refused(client: Client, verb: str, **said: object) -> ServerRefused:
    with pytest.raises(ServerRefused) as caught:
        client.ask(verb, **said)
    return caught.value


@pytest.mark.parametrize("name", HEAVY)
def test_a_schema_that_is_too_heavy_is_refused_at_every_door(
    server: Serving, name: str
) -> None:
    schema = HEAVY[name]
    http = Http(server)

    with native(server) as client:
        checked = refused(client, "schemas.check", topic="t", schema=schema)
        registered = refused(client, "schemas.register", topic="heavy", schema=schema)
    asked = http.ask("POST", "/v1/topics/t/schema/check", {"schema": schema})
    put = http.ask("PUT", "/v1/topics/heavy/schema", {"schema": schema})

    expected = "InvalidSchema" if "pattern" in name else "TooMuchWork"
    assert checked.error == registered.error == expected
    assert (asked.status, put.status) == (422, 422)
    if expected == "TooMuchWork":
        assert "10000 checks of one place" in str(checked)
        assert "broker.max_schema_weight" in asked.json()["detail"]


def test_schemas_that_are_long_to_compare_end_in_an_error(server: Serving) -> None:
    with native(server) as client:
        client.ask("schemas.register", topic="wide", schema=tagged(480))
        found = refused(client, "schemas.check", topic="wide", schema=tagged(470))

    assert found.error == "TooMuchWork"
    assert "the limit of broker.max_schema_s" in str(found)  # steps, or seconds


@pytest.mark.parametrize("name", NOT_TO_BE_MADE)
def test_data_that_cannot_be_made_up_ends_in_an_error(
    server: Serving, name: str
) -> None:
    http, topic = Http(server), f"not {name}".replace(" ", "-")
    schema = {"schema": NOT_TO_BE_MADE[name]}
    assert http.ask("PUT", f"/v1/topics/{topic}/schema", schema).status == 200

    made = http.ask("GET", f"/v1/topics/{topic}/schema/mock?count=100")

    assert made.status == 422
    assert made.json()["error"] in ("UnsupportedSchema", "TooMuchWork")


@pytest.mark.parametrize("name", TO_BE_MADE)
def test_lengths_and_different_items_are_made_as_asked(
    server: Serving, name: str
) -> None:
    http, topic = Http(server), f"made {name}".replace(" ", "-")
    schema = {"schema": TO_BE_MADE[name]}
    assert http.ask("PUT", f"/v1/topics/{topic}/schema", schema).status == 200

    found: list[object] = []
    while len(found) < 20:  # a question has so much time: on a busy machine it is short
        made = http.ask("GET", f"/v1/topics/{topic}/schema/mock?count=20")
        assert made.status == 200
        assert made.json()["documents"]
        found += made.json()["documents"]


def test_a_payload_that_fits_no_alternative_is_refused_at_once(server: Serving) -> None:
    payload: Any = "neither"
    for _ in range(60):
        payload = {"of": payload, "t": "C"}
    many = json.dumps([{"t": "C"}] * 50_000).encode()
    items = {"items": {"anyOf": [{"const": "1"}, {"const": "2"}]}}

    with native(server) as client:
        client.ask("schemas.register", topic="tree", schema=TREE)
        client.ask("schemas.register", topic="many", schema=items)
        for topic, data in (("tree", json.dumps(payload).encode()), ("many", many)):
            with pytest.raises(ServerRefused) as caught:
                client.publish(topic, [data])

            assert caught.value.error == "InvalidPayload"
            assert "where is not told" in str(caught.value)


def test_a_heavy_schema_does_not_take_large_payloads(server: Serving) -> None:
    schema = {"items": doubling(10, "anyOf")}
    schema["$defs"] = schema["items"].pop("$defs")

    with native(server) as client:
        client.ask("schemas.register", topic="twice", schema=schema)
        client.publish("twice", [json.dumps([1] * 100).encode()])
        with pytest.raises(ServerRefused) as caught:
            client.publish("twice", [json.dumps(["x"] * 200_000).encode()])

    assert "too large for this schema" in str(caught.value)


HEAVY_ITEMS = {
    "$defs": doubling(11, "allOf")["$defs"],
    "items": {"$ref": "#/$defs/a11"},
}
# 400 places each, so that one can be checked and two cannot.
ITEMS = json.dumps([1] * 400, separators=(",", ":")).encode()


def test_payloads_that_come_together_have_one_limit(server: Serving) -> None:
    with native(server) as client:
        client.ask("schemas.register", topic="batch", schema=HEAVY_ITEMS)
        client.publish("batch", [ITEMS])
        with pytest.raises(ServerRefused) as caught:
            client.publish("batch", [ITEMS] * 60)
        found: Any = client.ask("schemas.check", topic="batch", payloads=[ITEMS] * 60)
        after = client.publish("batch", [ITEMS])

    assert caught.value.error == "InvalidPayload"
    assert "cannot be checked" in str(caught.value)
    assert f"limit {MAX_CHECKS} (event 1 of the batch)" in str(caught.value)
    assert [row["index"] for row in found["misfits"]] == list(range(1, 60))
    assert list(after) == [1], "nothing of the batch is accepted unchecked"


def test_others_publish_while_somebody_publishes_too_much(server: Serving) -> None:
    with native(server) as client:
        client.ask("schemas.register", topic="much", schema=HEAVY_ITEMS)

    def keep_busy() -> int:
        with native(server) as hostile:
            for count in range(2, 22):
                with pytest.raises(ServerRefused, match="cannot be checked"):
                    hostile.publish("much", [ITEMS] * count)
        return 20

    with ThreadPoolExecutor(1) as pool, native(server) as neighbour:
        work = pool.submit(keep_busy)
        published = 0
        while not work.done():
            neighbour.publish("quiet", [b"x"])
            published += 1

    assert work.result() == 20
    assert published > 1, "it has its turn between the batches"


def test_a_heavy_schema_needs_an_administrator(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-maze") as open_to_all:
        where = f"127.0.0.1:{open_to_all.ports['native']}"
        with connect(where) as anybody:
            heavy = refused(anybody, "schemas.register", topic="t", schema=HEAVY_ITEMS)
            schema = {"items": {"type": "integer"}}
            anybody.ask("schemas.register", topic="t", schema=schema)
            anybody.publish("t", [ITEMS] * 60)

    assert heavy.error == "NotAllowed"
    assert "a schema that weighs 8191 (limit 200) for t" in str(heavy)
    assert "it needs an administrator" in str(heavy)


def test_others_publish_while_somebody_asks_for_work(server: Serving) -> None:
    schemas = [*HEAVY.values(), tagged(470)] * 3
    with native(server) as client:
        client.ask("schemas.register", topic="busy", schema=tagged(480))

    def keep_busy() -> int:
        with native(server) as hostile:
            for schema in schemas:
                refused(hostile, "schemas.check", topic="busy", schema=schema)
        return len(schemas)

    with ThreadPoolExecutor(1) as pool, native(server) as neighbour:
        work = pool.submit(keep_busy)
        published = 0
        while not work.done():
            neighbour.publish("quiet", [b"x"])
            published += 1

    assert work.result() == len(schemas)
    assert published > 1, "it waits for its own disk, not for the other's schemas"


def test_a_schema_of_ones_own_is_for_those_who_may_change_the_topic(
    server: Serving,
) -> None:
    http = Http(server)
    body = {"name": "publisher", "scope": "topics", "publish": ["t"]}
    token = http.ask("POST", "/v1/tokens", body).json()["token"]
    limited = Http(server, token)
    path = "/v1/topics/t/schema/check"
    with native(server) as boss:
        boss.ask("schemas.register", topic="t", schema={"type": "integer"})

    with native(server, "anna") as anna:
        fits: Any = anna.ask("schemas.check", topic="t", payloads=[b"1"])
        foreign = refused(anna, "schemas.check", topic="t", schema=True)

    assert fits["misfits"] == []
    assert foreign.error == "NotAllowed"
    assert limited.ask("POST", path, {"payloads": [1]}).status == 200
    assert limited.ask("POST", path, {"schema": True}).status == 403
    assert http.ask("POST", path, {"schema": True}).status == 200


def test_payloads_that_are_checked_have_a_limit(server: Serving) -> None:
    with native(server) as client:
        many = refused(client, "schemas.check", topic="t", payloads=[b"1"] * 1001)
        large = [b'"' + b"x" * 600_000 + b'"'] * 2
        size = refused(client, "schemas.check", topic="t", payloads=large)

    assert many.error == "InvalidArgument"
    assert size.error == "TooLarge"
