"""Settings of every test run.

Hypothesis profiles, chosen by the environment variable ``HYPOTHESIS_PROFILE``:

``fast``  the default; few examples, the same ones in every run
``deep``  many examples, drawn at random; a failure prints how to repeat it

A test that scales its own effort asks
``hypothesis.settings.get_current_profile_name()``.

Skipped components: a test that needs something which is not installed skips with a
reason that starts with ``component:``, and the end of the run names it::

    @pytest.mark.skipif(
        shutil.which("mosquitto_pub") is None,
        reason="component: mosquitto-clients (not installed)",
    )

Servers of a run, started when the first test asks for them: ``postgres_url``,
``mongodb_url``; an empty database of them: ``postgres_database``, ``mongodb_database``.

Several workers (``-n 2``) share the tests, but those that share something dear, and all
of Spark's, stay together: see ``group_of``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

COMPONENT = "component:"
# Whose tests share something that takes seconds to make: by the beginnings of names.
GROUPS = {
    "tests/spark/": "spark",
    "tests/web/": "web",
    "tests/unit/cdc/": "stores",
    "tests/unit/store/": "stores",
    "tests/unit/cli/test_store.py": "stores",
    "tests/unit/cli/test_cdc.py": "stores",
    "tests/test_packaging.py": "wheel",
    "tests/process/test_container.py": "containers",
}

settings.register_profile(
    "fast", max_examples=50, deadline=None, derandomize=True, print_blob=True
)
settings.register_profile(
    "deep",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_configure() -> None:
    """Ctrl-C means something, even in a run that a shell has put into the background.

    Such a shell has it ignored, and what a test starts would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    from tests.postgres import own_postgres

    with own_postgres() as server:
        yield server.url


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    from tests.postgres import database_of

    with database_of(postgres_url) as url:
        yield url


@pytest.fixture(scope="session")
def mongodb_url() -> Iterator[str]:
    from tests.mongod import own_mongod

    with own_mongod() as server:
        yield server.url


@pytest.fixture
def mongodb_database(mongodb_url: str) -> Iterator[str]:
    from tests.mongod import database_of

    with database_of(mongodb_url) as url:
        yield url


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Groups go to one worker each, the largest first; all others where there is room.

    A scheduler of ours, as marks of groups do nothing in pytest-xdist 3.8 with
    pytest 9.2.
    """
    from xdist.scheduler import (  # type: ignore[import-untyped]  # it has none
        LoadScopeScheduling,
    )

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Grouped(config, log)


def group_of(nodeid: str) -> str:
    """The name of the tests that one worker runs, one after the other."""
    return next((GROUPS[name] for name in GROUPS if nodeid.startswith(name)), nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    components = skipped_components(terminalreporter.getreports("skipped"))
    if components:
        terminalreporter.write_line("skipped components: " + ", ".join(components))


def skipped_components(reports: list[pytest.TestReport]) -> list[str]:
    """The components named by the reasons of skipped tests, each once, sorted."""
    names = set()
    for report in reports:
        if isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if reason.startswith(COMPONENT):
                names.add(reason.removeprefix(COMPONENT).strip())
    return sorted(names)
