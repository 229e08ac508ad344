"""The pipeline on a standalone cluster: the driver is killed, then a worker.

Broker and store are told to executors by address, with a login and over TLS; none of
the passwords is to be seen where others look.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from penstock.server.users_file import set_password
from penstock.spark.sessions import LIGHT, LOOPBACK
from penstock.store.store import VARIABLE
from tests.effort import DEEP
from tests.interop.certificates import Certificates
from tests.serving import PENSTOCK, Serving, serving
from tests.spark.pipeline_scene import (
    Json,
    check,
    events,
    generated,
    processed,
    publish,
)
from tests.spark.plain_pipeline import Expected
from tests.spark.standalone import Cluster, cluster, command_of
from tests.spark.test_pipeline_run import Stored
from tests.spark.up_scene import descendants

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.deep]

KILLS = 6 if DEEP else 1
WORKERS = 1 + KILLS
PART = 200
WAIT_S = 240.0
# A look reads whole topics.
LOOK_S = 0.25
USER, PASSWORD = "spark", "of-the-broker-4711"
SETTINGS = (
    # As little as goes, for workers as small as those here.
    "spark.executor.memory=512m",
    # All of them work, however late they come.
    f"spark.cores.max={WORKERS}",
    "spark.scheduler.minRegisteredResourcesRatio=1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime=120s",
    # What the pages of Spark would show, as text.
    "spark.eventLog.enabled=true",
    "spark.eventLog.compress=false",
    "spark.eventLog.rolling.enabled=false",
)


def test_nothing_is_lost_or_doubled_when_driver_and_worker_are_killed(
    postgres_database: str, tmp_path: Path
) -> None:
    payloads = generated(6, (2 * KILLS + 1) * PART)
    parts = [payloads[at : at + PART] for at in range(0, len(payloads), PART)]
    stored = Stored(postgres_database)
    with (
        secure(tmp_path) as (broker, login),
        cluster(tmp_path / "cluster", [LOOPBACK] * WORKERS) as spark,
    ):
        url, password = spelled_out(postgres_database)
        scene = Scene(broker, spark, url, tmp_path, login)
        for _ in range(KILLS):
            with scene.pipeline() as driver:
                scene.begin(parts.pop(0), driver)
                kill(driver)
        with scene.pipeline() as driver:
            for number in range(KILLS):
                scene.begin(parts.pop(0), driver)
                scene.until(lambda: scene.executors_with_python() >= 2, driver)
                spark.kill(number)
            for part in parts:
                publish(broker, part)
            expected = Expected(payloads)
            both = expected.count, expected.count
            scene.until(lambda: processed(broker) == both, driver)
            check_hidden(scene, driver.pid, [PASSWORD, password])
            driver.terminate()
            code = driver.wait(WAIT_S)

        assert code == 0, scene.log()
        check(broker, stored, payloads)


def kill(driver: subprocess.Popen[bytes]) -> None:
    """With its Java, which would say good-bye to the executors."""
    if driver.poll() is not None:
        return
    for pid in [*descendants(driver.pid), driver.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    driver.wait()


@dataclass
class Scene:
    broker: Serving
    spark: Cluster
    store: str
    directory: Path
    place: tuple[str, ...]
    """Options that say where the broker is, and who asks."""
    events: Path = field(init=False)

    def __post_init__(self) -> None:
        self.events = self.directory / "events"
        self.events.mkdir()

    @contextmanager
    def pipeline(self) -> Iterator[subprocess.Popen[bytes]]:
        """The driver, once its query runs; dead at the end."""
        is_ready = self.directory / "pipeline-ready.json"
        command = [*PENSTOCK, "pipeline", "run", "--master", self.spark.address]
        command += [*self.place, "--ready-file", str(is_ready)]
        command += ["--checkpoint", str(self.directory / "checkpoint")]
        command += ["--trigger", "200ms", "--max-per-trigger", "100"]
        for setting in (*SETTINGS, f"spark.eventLog.dir={self.events}"):
            command += ["--conf", setting]
        is_ready.unlink(missing_ok=True)
        with (self.directory / "pipeline.log").open("ab") as out:
            driver = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, VARIABLE: self.store, "JDK_JAVA_OPTIONS": LIGHT},
            )
        try:
            self.until(is_ready.exists, driver)
            yield driver
        finally:
            kill(driver)

    def until(self, done: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not done():
            code = driver.poll()
            assert code is None, f"ended with {code}: {self.log()}"
            assert time.monotonic() < deadline_s, self.log()
            time.sleep(LOOK_S)

    def begin(self, part: list[Json], driver: subprocess.Popen[bytes]) -> None:
        """Publish tweets, and wait until a batch of them is done."""
        before = told(self.broker)
        publish(self.broker, part)
        self.until(lambda: told(self.broker) > before, driver)

    def executors_with_python(self) -> int:
        """Executors that have begun to work."""
        return sum(
            any("spark.daemon" in command_of(pid) for pid in descendants(executor))
            for executor in self.spark.executors()
        )

    def log(self) -> str:
        return (self.directory / "pipeline.log").read_text()[-5000:]


@contextmanager
def secure(directory: Path) -> Iterator[tuple[Serving, tuple[str, ...]]]:
    """A broker with users and TLS, and the options for one who logs in."""
    made, users = Certificates(directory), directory / "users"
    set_password(users, USER, PASSWORD)
    password = directory / "password"
    password.write_text(PASSWORD)
    flags = ["--users-file", users, "--mqtts-port", "0"]
    flags += ["--tls-cert", made.server[0], "--tls-key", made.server[1]]
    with serving(directory, *map(str, flags)) as broker:
        server = f"penstock+tls://127.0.0.1:{broker.ports['native']}"
        login = ("--server", server, "--ca-file", str(made.authority))
        yield broker, (*login, "--user", USER, "--password-file", str(password))


def told(broker: Serving) -> int:
    """How many counts of tags are told: each batch has some."""
    return len(events(broker, "hashtag_stats"))


def spelled_out(url: str) -> tuple[str, str]:
    """The URL with its password in the place of a file of it, and the password."""
    place, _, file = url.partition("?passfile=")
    password = Path(unquote(file)).read_text().strip().rpartition(":")[2]
    return place.replace("@", f":{quote(password)}@", 1), password


def check_hidden(scene: Scene, driver: int, secrets: list[str]) -> None:
    """None is in a log, in what Spark's pages are made of, or in ``ps``."""
    shown = {path: path.read_bytes() for path in files(scene)}
    assert any(b"SparkListenerSQLExecutionStart" in text for text in shown.values())
    for executor in scene.spark.executors():
        for pid in (executor, driver, *descendants(driver), *descendants(executor)):
            shown[Path("/proc", str(pid))] = command_of(pid).encode()
    for path, text in shown.items():
        for secret in secrets:
            assert secret.encode() not in text, path


def files(scene: Scene) -> Iterator[Path]:
    yield scene.directory / "pipeline.log"
    for folder in (scene.events, scene.directory / "cluster"):
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix != ".jar":
                yield path
