"""QoS 2 is exactly once while broker, publisher and consumer are killed in turns."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.effort import effort
from tests.interop.brokers import REFERENCE, Penstock

SCRIPT = Path(__file__).with_name("once_client.py")
MESSAGES = effort(1000, 3000)
KILLS = effort(3, 12)
PATIENCE_S = 180.0

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(REFERENCE), reason="Mosquitto writes once in a while"),
]


class Life:
    """A client with a journal, and as many lives as it takes."""

    def __init__(self, role: str, port: int, version: int, folder: Path) -> None:
        self.journal = folder / f"{role}.journal"
        self._words = [role, str(port), str(version), str(self.journal), str(MESSAGES)]
        self._log = folder / f"{role}.log"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT), *self._words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def is_over(self) -> bool:
        code = self._process.poll()
        assert code in (None, 0), self._log.read_text()
        return code == 0

    def lines(self, word: str) -> list[str]:
        if not self.journal.exists():
            return []
        found = self.journal.read_text().splitlines()
        return [line for line in found if line.startswith(f"{word} ")]

    def said(self) -> str:
        return self._log.read_text()


@pytest.mark.parametrize(("seed", "version"), [(1, 311), (2, 5)])
def test_every_message_comes_once_and_in_order(
    own_broker: Penstock, tmp_path: Path, seed: int, version: int
) -> None:
    chance = random.Random(seed)
    consumer = Life("consumer", own_broker.port, version, tmp_path)
    publisher = Life("publisher", own_broker.port, version, tmp_path)
    everybody: list[Penstock | Life] = [own_broker, publisher, consumer]
    deadline_s = time.monotonic() + PATIENCE_S
    consumer.start()
    try:
        wait_until(lambda: consumer.lines("S"), deadline_s, "no subscription")
        publisher.start()
        for point in sorted(chance.sample(range(MESSAGES), KILLS)):
            wait_until(
                lambda point=point: len(publisher.lines("C")) >= point,
                deadline_s,
                f"seed {seed}: stuck before {point}: {publisher.said()}",
            )
            for victim in chance.sample(everybody, 2):
                victim.kill()
                victim.start()
        wait_until(
            lambda: publisher.is_over and consumer.is_over,
            deadline_s,
            f"seed {seed}: publisher {publisher.said()} consumer {consumer.said()}",
        )
    finally:
        for life in (publisher, consumer):
            if hasattr(life, "_process"):
                life.kill()

    got = [int(line.split(" ")[2]) for line in consumer.lines("M")]
    lost = sorted(set(range(MESSAGES)) - set(got))
    twice = sorted(number for number, times in Counter(got).items() if times > 1)
    assert (lost, twice) == ([], []), f"seed {seed}"
    assert got == sorted(got), f"seed {seed}: out of order"


def wait_until(condition, deadline_s: float, otherwise: str) -> None:
    while not condition():
        assert time.monotonic() < deadline_s, otherwise
        time.sleep(0.02)
