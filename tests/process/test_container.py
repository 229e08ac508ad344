"""The image and the compose file, built and run for real, in ``make deep``.

That takes minutes: a small Debian is made where no registry answers. What the files
name is checked in every run, by ``tests/test_container_files.py``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it has none

from tests import containers
from tests.containers import Engine, eventually
from tests.effort import DEEP
from tests.mongod import free_port
from tests.serving import PENSTOCK

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "deploy" / "container"
IMAGE = "penstock"
EXTRAS = "pipeline,sql"
READY_S = 60.0
# Spark starts, and Debian's podman starts a container again at once.
PIPELINE_S = 400.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(
        not DEEP, reason="component: containers (built and run by make deep)"
    ),
]


@pytest.fixture(scope="module")
def podman() -> Iterator[Engine]:
    """Podman, with an image of Penstock as the Containerfile makes it."""
    with containers.engine() as engine:
        dist(engine)
        engine.run(
            *("build", "-q", "--format=docker", "--build-arg", f"EXTRAS={EXTRAS}"),
            *("--build-arg", f"BASE={containers.base(engine)}", "-t", IMAGE),
            *offline(engine),
            *("-f", str(FOLDER / "Containerfile"), str(engine.folder / "dist")),
        )
        yield engine


def dist(engine: Engine) -> None:
    """The wheel in dist/, and all that it needs in wheels/, from where pip has it."""
    made, needed = engine.folder / "dist", engine.folder / "wheels"
    _wheel(engine, made, "--no-deps", "--no-build-isolation", str(ROOT))
    (wheel,) = made.glob("*.whl")
    _wheel(engine, needed, f"{wheel}[{EXTRAS}]")


def _wheel(engine: Engine, into: Path, *arguments: str) -> None:
    done = engine.program(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"),
        *("wheel", "--wheel-dir", str(into), *arguments),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def offline(engine: Engine) -> list[str]:
    """A build takes what was fetched, as it may not reach what this machine does."""
    settings = engine.folder / "pip.conf"
    settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    return [
        "--network=none",
        f"--volume={engine.folder}/wheels:/wheels:ro",
        f"--volume={settings}:/etc/pip.conf:ro",
    ]


@pytest.fixture
def network(podman: Engine) -> Iterator[str]:
    name = f"penstock-test-{uuid.uuid4().hex[:8]}"
    podman.run("network", "create", name)
    yield name
    podman.cleared()
    podman.run("network", "rm", "--force", name)


def serving(
    podman: Engine, network: str, volume: str, port: int, access: str = "--insecure"
) -> str:
    """A broker that is healthy; its container."""
    container = podman.run(
        *("run", "--detach", f"--network={network}", "--network-alias=broker"),
        *(f"--volume={volume}:/data", f"--publish=127.0.0.1:{port}:8410"),
        *(IMAGE, "serve", access),
    )
    healthy(podman, container)
    return container


def publish(port: int, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Publish something from this machine, at a port that a container has there."""
    server = f"--server=127.0.0.1:{port}"
    return subprocess.run(
        [*PENSTOCK, "publish", "greetings", "hello", server, *options],
        capture_output=True,
    )


def healthy(podman: Engine, container: str) -> None:
    eventually(
        lambda: podman.tried("healthcheck", "run", container).returncode == 0,
        READY_S,
        lambda: podman.run("logs", container),
    )


def test_without_users_it_does_not_start(podman: Engine) -> None:
    done = podman.tried("run", "--rm", "--network=none", IMAGE)

    assert done.returncode == 2
    assert "there is no users file" in done.stderr


def test_what_is_published_outlives_its_container(podman: Engine, network: str) -> None:
    port, volume = free_port(), uuid.uuid4().hex
    first = serving(podman, network, volume, port)
    published = publish(port)
    assert published.returncode == 0, published.stderr
    assert podman.run("exec", first, "id", "-u") == "10001"
    assert podman.run("inspect", "--format={{.State.Health.Status}}", first) == (
        "healthy"
    )

    code, took_s = podman.ended(first)
    podman.run("rm", first)
    serving(podman, network, volume, port)
    read = podman.run(
        *("run", "--rm", f"--network={network}", "--env=PENSTOCK_SERVER=broker:8410"),
        *(IMAGE, "subscribe", "greetings", "--from=earliest", "--count=1"),
    )

    assert code == 0
    assert took_s < 20
    assert read == "hello"


def test_with_users_everybody_logs_in(
    podman: Engine, network: str, tmp_path: Path
) -> None:
    port, volume = free_port(), uuid.uuid4().hex
    secret = tmp_path / "secret"
    secret.write_text("a long word\n")
    add = "echo a long word | penstock users add anna --file users --password-stdin"
    podman.run(
        *("run", "--rm", f"--volume={volume}:/data", "--network=none"),
        *("--entrypoint=sh", IMAGE, "-c", add),
    )
    serving(podman, network, volume, port, "--users-file=users")

    stranger = publish(port)
    anna = publish(port, "--user=anna", f"--password-file={secret}")

    assert stranger.returncode == 2
    assert anna.returncode == 0, anna.stderr


def test_a_broker_that_cannot_work_is_not_healthy(podman: Engine, network: str) -> None:
    container = podman.run(
        *("run", "--detach", f"--network={network}", IMAGE),
        *("serve", "--insecure", "--no-http"),
    )
    eventually(
        lambda: "is ready" in podman.run("logs", container),
        READY_S,
        lambda: podman.run("logs", container),
    )

    assert podman.tried("healthcheck", "run", container).returncode == 1


def test_a_subscriber_ends_when_it_is_told_to(podman: Engine, network: str) -> None:
    broker = serving(podman, network, uuid.uuid4().hex, free_port())
    podman.run("exec", broker, "penstock", "publish", "greetings", "hello")
    subscriber = podman.run(
        *("run", "--detach", f"--network={network}"),
        *("--env=PENSTOCK_SERVER=broker:8410", IMAGE),
        *("subscribe", "greetings", "--as=reader", "--from=earliest"),
    )
    eventually(
        lambda: podman.run("logs", subscriber) == "hello",
        READY_S,
        lambda: podman.run("logs", subscriber),
    )

    code, took_s = podman.ended(subscriber)

    assert code == 0
    assert took_s < 20
    lag = podman.run("exec", broker, "penstock", "subscriptions", "--json")
    assert [one["lag"] for one in json.loads(lag)] == [0]


class Composed:
    """The services of the compose file, on free ports, under a name of their own."""

    def __init__(self, podman: Engine) -> None:
        self.name = f"penstock-test-{uuid.uuid4().hex[:8]}"
        self._podman = podman
        place = podman.folder / "deploy" / "container"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / "Containerfile", place)
        self._file = place / "compose.yaml"
        self._file.write_text(yaml.safe_dump(self._services(), sort_keys=False))

    def __call__(self, *arguments: str) -> None:
        done = self._podman.program(
            *("podman-compose", "-f", str(self._file), "-p", self.name),
            *("--podman-build-args", " ".join(offline(self._podman)), *arguments),
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def said(self, service: str) -> str:
        done = self._podman.tried("logs", "--tail=20", f"{self.name}_{service}_1")
        return done.stdout + done.stderr

    def broker(self, *command: str) -> str:
        return self._podman.run("exec", f"{self.name}_broker_1", "penstock", *command)

    def _services(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
        broker = found["services"]["broker"]
        broker["build"]["args"]["BASE"] = containers.base(self._podman)
        broker["ports"] = [
            f"127.0.0.1:{free_port()}:{port.split(':')[2]}" for port in broker["ports"]
        ]
        return found


@pytest.fixture
def composed(podman: Engine) -> Iterator[Composed]:
    if shutil.which("podman-compose") is None:
        pytest.skip("component: podman-compose (not installed)")
    compose = Composed(podman)
    try:
        yield compose
    finally:
        podman.cleared()
        podman.tried("network", "rm", "--force", f"{compose.name}_default")


def test_the_pipeline_of_the_compose_file(podman: Engine, composed: Composed) -> None:
    """Tweets come to a subscriber by way of ingest, Spark, MongoDB and its changes."""
    composed("build")
    containers.with_mongo(podman)
    composed("up", "--detach")
    healthy(podman, f"{composed.name}_broker_1")

    eventually(
        lambda: " events, " in composed.said("subscriber"),
        PIPELINE_S,
        lambda: "\n".join(
            f"{name}: {composed.said(name)}"
            for name in ("replica-set", "ingest", "cdc", "pipeline", "subscriber")
        ),
    )

    def topics() -> set[str]:
        return {one["name"] for one in json.loads(composed.broker("topics", "--json"))}

    # Statistics are of windows: they come later than the first tweet.
    wanted = {"firehose", "tweets", "users", "tweets_stats"}
    eventually(lambda: wanted <= topics(), PIPELINE_S, lambda: str(topics()))
    for service in ("subscriber", "pipeline", "cdc", "ingest", "source", "broker"):
        code, took_s = podman.ended(f"{composed.name}_{service}_1")
        # A batch that takes its time is cut off, and done again the next time.
        cut_off = service == "pipeline" and "cut off" in composed.said(service)
        assert (service, code) == (service, 143 if cut_off else 0)
        assert took_s < 20
