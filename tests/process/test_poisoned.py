"""An event that kills whoever gets it ends in the dead letters, and no other does.

Here of a server; of a broker in the process itself, see test_embedded_poison.py.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from penstock.client import connect
from penstock.delivery.error_log import TOPIC as ERRORS
from penstock.delivery.letters import TOPIC as LETTERS
from penstock.delivery.letters import DeadLetter, decode_letter
from penstock.log import Reader
from tests.process.poisoned import NAME, POISON, TOPIC, TRIES, WINDOW
from tests.serving import serving

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("poisoned.py")
NEIGHBOURS = [b"%d" % number for number in range(30)]
EVENTS = [*NEIGHBOURS[:13], POISON, *NEIGHBOURS[13:]]
# Its own tries, and as many as its neighbours may be suspected for.
MOST_RUNS = TRIES + WINDOW + 5


def test_consumer_that_is_killed_by_an_event_loses_that_event_alone(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, "--no-maze") as server:
        with connect(server.data) as client:
            client.publish(TOPIC, EVENTS)

        handled = run_until_it_lives(server.data)

        server.stop()
    check(server.data, handled)


def run_until_it_lives(directory: Path) -> Counter[bytes]:
    """Start the consumer again whenever it was killed; what was handled how often."""
    handled: Counter[bytes] = Counter()
    for _ in range(MOST_RUNS):
        command = [sys.executable, str(SCRIPT), str(directory)]
        done = subprocess.run(command, capture_output=True, timeout=60)
        handled.update(done.stdout.split())
        if done.returncode == 0:
            return handled
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    raise AssertionError(f"it was killed {MOST_RUNS} times")


def check(directory: Path, handled: Counter[bytes]) -> None:
    (letter,) = map(decode_letter, payloads(directory, LETTERS))
    assert set(handled) == set(NEIGHBOURS)
    assert (letter.topic, letter.subscriber) == (TOPIC, NAME)
    check_letter(letter)
    lost = sum(b'"Lost"' in row for row in payloads(directory, ERRORS))
    assert lost >= TRIES


def check_letter(letter: DeadLetter) -> None:
    assert letter.event is not None
    assert (letter.event.payload, letter.kind) == (POISON, "Lost")
    tries = [(one.tries, one.kind) for one in letter.failures]
    assert tries == [(number, "Lost") for number in range(1, TRIES + 1)]


def payloads(directory: Path, topic: str) -> list[bytes]:
    with Reader.open(directory) as reader:
        return [one for batch in reader.read(topic, 0) for one in batch.payloads()]
