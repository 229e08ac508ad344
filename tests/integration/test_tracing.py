"""Spans of a real broker: in a program, over the network, and at a collector."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import penstock
from penstock.client import connect
from penstock.tracing import exporting, of_provider
from penstock.tracing.spans import Tracing
from tests.serving import serving

PATIENCE_S = 60.0


class Recorder:
    """A tracing whose spans are kept."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracing: Tracing = of_provider(provider)
        self.tracer = provider.get_tracer("program")

    def way(self, last: str) -> list[str]:
        """The names of spans from the first one down to the one of this name."""
        spans = {_id(one): one for one in self._kept.get_finished_spans()}
        found = [one for one in spans.values() if one.name == last]
        assert found, [one.name for one in spans.values()]
        span: ReadableSpan | None = found[-1]
        names: list[str] = []
        while span is not None:
            names.insert(0, span.name)
            span = None if span.parent is None else spans.get(span.parent.span_id)
        return names


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def chain() -> penstock.Domain:
    """Orders become invoices become letters: one async, one in a thread."""
    domain = penstock.Domain("billing")

    @domain.on("orders")
    async def invoice(event: penstock.Event[bytes], context: penstock.Context) -> None:
        await asyncio.sleep(0)
        context.publish("invoices", event.payload)

    @domain.on("invoices")
    def post(event: penstock.Event[bytes], context: penstock.Context) -> None:
        context.publish("letters", event.payload)

    return domain


WAY = [
    *("publish orders", "deliver orders", "handle orders"),
    *("publish invoices", "deliver invoices", "handle invoices", "publish letters"),
]


def test_one_trace_goes_through_all_handlers(
    tmp_path: Path, recorder: Recorder
) -> None:
    async def program() -> None:
        async with penstock.open(tmp_path, tracing=recorder.tracing) as broker:
            await broker.start(chain())
            with recorder.tracer.start_as_current_span("request"):
                await broker.publish("orders", b"x")
            await broker.wait_until_settled(PATIENCE_S)

    asyncio.run(program())

    assert recorder.way("publish letters") == ["request", *WAY]


def test_a_blocking_program_is_traced_alike(tmp_path: Path, recorder: Recorder) -> None:
    with penstock.open(tmp_path, tracing=recorder.tracing) as broker:
        broker.start(chain())
        with recorder.tracer.start_as_current_span("request"):
            broker.publish_many("orders", [b"x", b"y"])
        broker.wait_until_settled(PATIENCE_S)

    assert recorder.way("publish letters") == ["request", *WAY]


def test_a_handler_that_fails_shows_every_try(
    tmp_path: Path, recorder: Recorder
) -> None:
    domain = penstock.Domain("billing")

    @domain.on("orders", tries=2, backoff_s=0.0)
    async def fail(event: penstock.Event[bytes]) -> None:
        raise ValueError("no")

    with penstock.open(tmp_path, tracing=recorder.tracing) as broker:
        broker.start(domain)
        broker.publish("orders", b"x")
        broker.wait_until_settled(PATIENCE_S)

    spans = recorder._kept.get_finished_spans()
    tries = [one for one in spans if one.name == "handle orders"]
    assert [one.attributes["penstock.try"] for one in tries if one.attributes] == [1, 2]
    assert all(not one.status.is_ok for one in tries)


def test_a_program_elsewhere_goes_on_with_the_trace(
    tmp_path: Path, recorder: Recorder
) -> None:
    with serving(tmp_path, "--no-json", "--no-maze", "--no-http") as server:
        url = f"penstock://127.0.0.1:{server.ports['native']}"
        with penstock.open(url, tracing=recorder.tracing) as broker:
            broker.start(chain())
            broker.publish("orders", b"x")
            broker.wait_until_settled(PATIENCE_S)

    # The server traces nothing here: handlers are below what published.
    assert recorder.way("publish letters") == [
        name for name in WAY if not name.startswith("deliver")
    ]


def test_clients_publish_and_handle_in_a_trace(
    tmp_path: Path, recorder: Recorder
) -> None:
    tracing = recorder.tracing
    with (
        serving(tmp_path, "--no-json", "--no-maze", "--no-http") as server,
        connect(server.data, tracing=tracing) as client,
    ):
        client.publish("orders", [b"x", b"y"])
        with client.subscribe("orders", "billing", start="earliest") as subscription:
            delivery = subscription.next(PATIENCE_S)
            assert delivery is not None
            with tracing.handling(delivery.event, "billing"):
                client.publish("invoices", b"z")

    assert recorder.way("publish invoices") == [
        *("publish orders", "handle orders", "publish invoices"),
    ]


def test_an_async_client_does_too(tmp_path: Path, recorder: Recorder) -> None:
    from penstock.client import aio

    async def program(data: Path) -> dict[str, str]:
        async with await aio.connect(data, tracing=recorder.tracing) as client:
            await client.publish("orders", b"x")
            one = await client.subscribe("orders", start="earliest")
            async for delivery in one:
                return dict(delivery.event.headers)
        raise AssertionError("it never ends by itself")

    with serving(tmp_path, "--no-json", "--no-maze", "--no-http") as server:
        headers = asyncio.run(program(server.data))

    assert recorder.way("publish orders") == ["publish orders"]
    assert headers["traceparent"].startswith("00-")


# A collector


class Collector:
    """Takes spans by OTLP over HTTP, as a collector does."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self._came = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                collector.take(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing to be seen."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._came:
            for resource in request.resource_spans:
                for one in resource.resource.attributes:
                    if one.key == "service.name":
                        self.services.add(one.value.string_value)
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self._came.notify_all()

    def until(self, *names: str) -> list[Span]:
        """Spans of these names, once there are some of each."""
        with self._came:
            assert self._came.wait_for(
                lambda: {one.name for one in self.spans} >= set(names), PATIENCE_S
            ), [one.name for one in self.spans]
            return [next(o for o in self.spans if o.name == name) for name in names]


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        thread.join()
        collector.server.server_close()


def test_spans_of_a_server_and_its_clients_meet_at_a_collector(tmp_path: Path) -> None:
    with collecting() as collector:
        config = tmp_path / "penstock.toml"
        config.write_text(f'[tracing]\nendpoint = "{collector.url}"\n')
        flags = ("--no-json", "--no-maze", "--no-http", "--config", str(config))
        tracing = exporting(collector.url, "shop")
        with (
            serving(tmp_path, *flags) as server,
            connect(server.data, tracing=tracing) as client,
        ):
            client.publish("orders", b"x")
            with client.subscribe("orders", "billing", start="earliest") as one:
                assert one.next(PATIENCE_S) is not None
            tracing.close()
            assert server.stop() == 0  # which sends what is left

        publish, deliver = collector.until("publish orders", "deliver orders")

    assert publish.trace_id == deliver.trace_id
    assert deliver.parent_span_id == publish.span_id
    assert collector.services == {"shop", "penstock"}
    about = {one.key: one.value for one in deliver.attributes}
    assert about["messaging.consumer.group.name"].string_value == "billing"
    assert deliver.end_time_unix_nano >= deliver.start_time_unix_nano


def test_a_collector_that_is_away_stops_nothing(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text('[tracing]\nendpoint = "http://127.0.0.1:9"\n')
    flags = ("--no-json", "--no-maze", "--no-http", "--config", str(config))
    with serving(tmp_path, *flags) as server:
        with connect(server.data) as client:
            client.publish("orders", b"x", headers=[{"traceparent": "nonsense"}])
            with client.subscribe("orders", start="earliest") as one:
                assert one.next(PATIENCE_S) is not None

        assert server.stop() == 0


def test_nothing_of_it_is_imported_unless_it_is_wanted(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "import sys, penstock\n"
        f"with penstock.open({str(tmp_path)!r}) as broker:\n"
        "    broker.publish('t', b'x')\n"
        "assert not [n for n in sys.modules if n.startswith('opentelemetry')]\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True)

    assert done.returncode == 0, done.stderr.decode()
