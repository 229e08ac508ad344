"""Runs one file of Paho's interoperability suite and says what came of each case.

    python paho_suite.py FOLDER client_test5 PORT     # FOLDER/client_test5.py

Prints one JSON line: the case -> "passed", or the end of its traceback. A program of
its own, because the suite has threads that nobody joins. A case that hangs is told so
by an error; one that swallows the error is left behind: the program begins anew with
the cases that are left.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import sys
import unittest
from typing import Any

# The longest case sleeps for half a minute.
CASE_S = 60.0
SWALLOWED_S = 5.0
PREFIX = "client_test5/"
TOPICS = ("TopicA", "TopicA/B", "Topic/C", "TopicA/C", "/TopicA")
FILTERS = ("TopicA/+", "+/C", "#", "/#", "/+", "+/+", "TopicA/#")


class Outcomes(unittest.TestResult):
    """Remembers each case by its name, with what it printed if it did not pass."""

    def __init__(self, said: io.StringIO, cases: dict[str, str]) -> None:
        super().__init__()
        self.cases = cases
        self.running = ""
        self.alarms = 0
        self._said = said

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._said.seek(0)
        self._said.truncate()
        self.running, self.alarms = _name(test), 0
        signal.setitimer(signal.ITIMER_REAL, CASE_S, SWALLOWED_S)

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        super().stopTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.cases[_name(test)] = "passed"

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._remember(test, self.failures[-1][1])

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._remember(test, self.errors[-1][1])

    def _remember(self, test: Any, why: str) -> None:
        # The suite prints the traceback that matters, and asserts a flag at the end.
        lines = (self._said.getvalue() + why).strip().splitlines()
        self.cases[_name(test)] = "\n".join(lines[-30:])


def run(folder: str, name: str, port: int, cases: dict[str, str]) -> dict[str, str]:
    """All cases but those that are known already."""
    sys.path.insert(0, folder)
    said = io.StringIO()
    outcomes = Outcomes(said, cases)

    def give_up(*_: object) -> None:
        outcomes.alarms += 1
        if outcomes.alarms > 1:
            signal.setitimer(signal.ITIMER_REAL, 0)  # it would outlive the exec
            cases[outcomes.running] = f"hung: not finished after {CASE_S:.0f} s"
            os.execv(sys.executable, [sys.executable, *sys.argv[:4], json.dumps(cases)])
        raise TimeoutError(f"not finished after {CASE_S:.0f} s")

    signal.signal(signal.SIGALRM, give_up)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        suite: Any = importlib.import_module(name)
        # What its own main would set from the command line.
        suite.host, suite.port = "127.0.0.1", port
        suite.topics, suite.wildtopics = TOPICS, FILTERS
        suite.nosubscribe_topics = ("test/nosubscribe",)
        suite.topic_prefix = PREFIX
        every = unittest.defaultTestLoader.loadTestsFromTestCase(suite.Test)
        left = [case for case in every if _name(case) not in cases]
        unittest.TestSuite(left).run(outcomes)
    return cases


def _name(test: Any) -> str:
    return str(test.id()).rpartition(".")[2]


if __name__ == "__main__":
    known = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    found = run(sys.argv[1], sys.argv[2], int(sys.argv[3]), known)
    os.write(1, json.dumps(found).encode() + b"\n")
    # Its threads may wait for a server that is gone.
    os._exit(0)
