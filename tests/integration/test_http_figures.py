"""The broker at work, over HTTP: a real server, real traffic, real streams."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.client import connect
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

FLAGS = ("--no-json", "--no-maze", "--http-port", "0")


class Api:
    """Asks a server, as its first token lets one."""

    def __init__(self, server: Serving) -> None:
        self.server = server
        token = (server.data / "http-admin-token").read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}"}

    def raw(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        port = self.server.ports["http"]
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            data = None if body is None else json.dumps(body).encode()
            sent = {**self.headers, "Content-Type": "application/json", **headers}
            link.request(method, path, data, sent)
            answer = link.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            link.close()

    def get(self, path: str) -> Any:
        status, _, body = self.raw("GET", path)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, body: object) -> Any:
        status, _, answer = self.raw("POST", path, body)
        assert status < 300, answer
        return json.loads(answer)

    def until(self, path: str, condition: Any) -> Any:
        """Ask until something is so."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition(found := self.get(path)):
            assert time.monotonic() < deadline_s, found
            time.sleep(0.05)
        return found

    @contextmanager
    def live(self, query: str = "") -> Iterator[Iterator[tuple[str, Any]]]:
        """Events of /v1/live as they come."""
        port = self.server.ports["http"]
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            link.request("GET", f"/v1/live{query}", headers=self.headers)
            answer = link.getresponse()
            assert answer.status == 200
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            yield _events(answer)
        finally:
            link.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name = ""
    while line := answer.readline().decode().rstrip("\n"):
        yield from ()
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, json.loads(line[6:])
            answer.readline()  # the empty one
        elif line.startswith("retry: "):
            answer.readline()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path, *FLAGS) as server:
        yield Api(server)


def test_the_overview_tells_what_goes_in_and_out(api: Api) -> None:
    with connect(api.server.data, name="shop") as client:
        client.publish("orders", [b"x"] * 500)
        with client.subscribe("orders", "billing", start="earliest") as subscription:
            got = 0
            while got < 500:
                batch = subscription.next_batch(PATIENCE_S)
                assert batch is not None
                subscription.settle(list(batch.offsets))
                got += len(batch.offsets)
        look = api.until("/v1/overview", lambda found: found["rates"]["out"] > 0)

    assert look["totals"] == {"in": 500, "out": 500}
    assert look["connections"]["local"] == 1
    (orders,) = look["topics"]
    assert (orders["name"], orders["events"], orders["lag"]) == ("orders", 500, 0)
    assert sum(orders["spark"]) > 0
    assert look["sync"]["p95_ms"] >= look["sync"]["p50_ms"] > 0
    assert look["disk"]["free_bytes"] > 0


def test_topics_are_paged_and_searched(api: Api) -> None:
    with connect(api.server.data) as client:
        for name in ("a/b", "orders", "orders.paid"):
            client.publish(name, b"x")

    first = api.get("/v1/overview?after=&limit=2")
    rest = api.get(f"/v1/overview?after={first['topics'][-1]['name']}")
    found = api.get("/v1/overview?search=PAID")

    assert [one["name"] for one in first["topics"]] == ["a/b", "orders"]
    assert first["more"]
    assert [one["name"] for one in rest["topics"]] == ["orders.paid"]
    assert [one["name"] for one in found["topics"]] == ["orders.paid"]


def test_who_is_connected_is_told(api: Api) -> None:
    with connect(api.server.data) as client:
        client.publish("orders", [b"one", b"two"])
    with Wire(api.server.ports["line"]) as wire:
        wire.line()
        wire.ask("as billing")
        wire.ask("sub orders")

        (row,) = api.get("/v1/connections")["connections"]

    assert (row["gateway"], row["peer"], row["name"]) == (
        "line",
        "127.0.0.1",
        "billing",
    )
    assert row["bytes_in"] > 0
    (share,) = row["subscriptions"]
    assert (share["subscriber"], share["topic"]) == ("billing", "orders")


def test_the_flow_is_found_in_events(api: Api) -> None:
    with connect(api.server.data, name="shop") as client:
        places = client.publish("orders", [b"x"])
        client.publish("invoices", [b"y"], parents=[places.id(0)])

    flow = api.get("/v1/flow")

    edges = {(one["from"], one["to"]): one["kind"] for one in flow["edges"]}
    assert edges == {
        ("producer:shop", "topic:orders"): "publish",
        ("producer:shop", "topic:invoices"): "publish",
        ("topic:orders", "topic:invoices"): "cause",
    }


def test_processes_and_settings_are_told(api: Api) -> None:
    processes = api.get("/v1/processes")
    settings = {one["key"]: one for one in api.get("/v1/config")["settings"]}

    (broker,) = processes["processes"]
    assert (broker["name"], broker["pid"]) == ("broker", api.server.pid)
    assert broker["memory_bytes"] > 1 << 20
    assert processes["machine"]["cores"] == os.cpu_count()
    assert settings["server.data"]["value"] == str(api.server.data)
    assert settings["server.data"]["origin"] == "flag --data"
    assert settings["line.window"]["origin"] == "default"


def test_the_pipeline_is_as_its_file_says(tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    stage = {"name": "spark", "state": "ready", "events": 7, "pid": os.getpid()}
    config = tmp_path / "penstock.toml"
    config.write_text(f'[http]\npipeline_status = "{status}"\n')
    flags = (*FLAGS, "--control-port", "0", "--config", str(config))
    with serving(tmp_path, *flags) as server:
        api = Api(server)
        assert api.get("/v1/pipeline") == {
            "running": False,
            "stages": [],
            "at_ms": None,
            "resting": False,
            "asked": False,
            "spark": True,
        }

        at_ms = time.time_ns() // 1_000_000
        told = {"running": True, "stages": [stage], "at_ms": at_ms}
        status.write_text(json.dumps({**told, "resting": True}))

        found = api.get("/v1/pipeline")
        assert found["running"]
        assert found["stages"][0]["events"] == 7
        names = [one["name"] for one in api.get("/v1/processes")["processes"]]
        assert names == ["broker", "spark"]

        assert (found["resting"], found["asked"]) == (True, False)
        with Wire(server.ports["control"]) as wire:
            wire.say("twitter")
            assert wire.lines(3)[-1] == "[Command] the stream rested: it begins now"
        assert api.get("/v1/pipeline")["asked"], "also when who asked has left"


def test_a_subscription_that_was_suspended_is_resumed(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-maze", "--http-port", "0") as server:
        api = Api(server)
        # Nothing is suspended: it stays as it is.
        with connect(server.data) as client:
            client.publish("orders", b"x")
            client.subscribe("orders", "billing").close()
        found = api.post("/v1/subscriptions/billing/orders/resume", {})

        assert found["state"] == "away"
        status, _, body = api.raw("POST", "/v1/subscriptions/no/orders/resume", {})
        assert status == 404
        assert json.loads(body)["error"] == "UnknownSubscription"


def test_live_begins_whole_and_goes_on_with_changes(api: Api) -> None:
    with connect(api.server.data) as client:
        client.publish("busy", b"x")
        client.publish("quiet", b"x")
        with api.live() as events:
            name, first = next(events)
            assert (name, first["whole"]) == ("overview", True)
            assert {one["name"] for one in first["topics"]} == {"busy", "quiet"}
            # Until the first second has passed, everything changes.
            quiet = next(
                look
                for _, look in events
                if look["history"]["in"] and not look["whole"]
            )
            assert quiet["totals"]["in"] == 2
            client.publish("busy", [b"y"] * 10)

            look = next(
                look
                for _, look in events
                if any(one["in"] > 0 for one in look["topics"] if one["name"] == "busy")
            )

    assert not look["whole"]
    assert look["topics"][0]["name"] == "busy"


def test_live_tells_the_flow_to_those_who_want_it(api: Api) -> None:
    with connect(api.server.data, name="shop") as client:
        client.publish("orders", b"x")
    with api.live("?topics=0&flow=1") as events:
        first, second = next(events), next(events)

    assert first[0] == "overview"
    assert first[1]["topics"] == []
    assert second[0] == "flow"
    assert [one["id"] for one in second[1]["nodes"]] == [
        "topic:orders",
        "producer:shop",
    ]


def test_live_ends_with_the_server(api: Api) -> None:
    with api.live() as events:
        next(events)
        assert api.server.stop() == 0

        assert all(name == "overview" for name, _ in events)


def test_nobody_looks_without_a_token(api: Api) -> None:
    api.headers = {}

    for path in ("/v1/overview", "/v1/live", "/v1/flow", "/v1/config", "/metrics"):
        assert api.raw("GET", path)[0] == 401, path
