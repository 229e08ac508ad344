"""Settings of every test run.

Hypothesis profiles, chosen by the environment variable ``HYPOTHESIS_PROFILE``:

``fast``  the default; few examples, the same ones in every run
``deep``  many examples, drawn at random; a failure prints how to repeat it

A test that scales its own effort asks
``hypothesis.settings.get_current_profile_name()``.

``@pytest.mark.deep`` is for the long variants of what a shorter test shows as well:
they run in ``make deep`` alone.

Skipped components: a test that needs something which is not installed skips with a
reason that starts with ``component:``, and the end of the run names it::

    @pytest.mark.skipif(
        shutil.which("mosquitto_pub") is None,
        reason="component: mosquitto-clients (not installed)",
    )

Servers of a run, started when the first test asks for them: ``postgres_url``,
``mongodb_url``; an empty database of them: ``postgres_database``, ``mongodb_database``.
Tests that ask for one of them are ``slow``, without saying so.

Several workers (``-n 5``) share the tests, but those that share something dear, and all
of Spark's, stay together, and so do the tests of a file: see ``group_of``. What takes
long begins first: see ``turn_of``.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

COMPONENT = "component:"
# Whose tests share something that takes seconds to make, by the beginnings of names; in
# the order in which they begin.
GROUPS = {
    "tests/spark/": "spark",
    "tests/web/": "web",
    "tests/unit/cdc/": "stores",
    "tests/unit/store/": "stores",
    "tests/unit/cli/test_store.py": "stores",
    "tests/unit/cli/test_cdc.py": "stores",
    "tests/contract/test_store": "stores",
    "tests/process/test_cdc_": "stores",
    "tests/test_packaging.py": "wheel",
    "tests/process/test_container.py": "containers",
}
# Objects made, and not freed, before garbage is searched for.
GARBAGE = 20_000
SERVERS = frozenset({"postgres_url", "mongodb_url"})
# Whose files hold many short tests: they come after all others, so that the workers end
# at nearly the same time.
SHORT = ("tests/unit/", "tests/test_")

settings.register_profile(
    "fast", max_examples=30, deadline=None, derandomize=True, print_blob=True
)
settings.register_profile(
    "deep",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
DEEP = settings.get_current_profile_name() == "deep"


def pytest_configure() -> None:
    """Ctrl-C means something, even in a run that a shell has put into the background.

    Such a shell has it ignored, and what a test starts would inherit that.

    Of what is collected nothing becomes garbage: searching it would take seconds.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave the long variants to ``make deep``; workers begin with what takes long."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: turn_of(item.nodeid))
    for item in items:
        if not SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    if DEEP:
        return
    parts: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        parts[item.get_closest_marker("deep") is not None].append(item)
    if parts[True]:
        config.hook.pytest_deselected(items=parts[True])
        items[:] = parts[False]


def pytest_collection_finish() -> None:
    """From here on garbage is searched for, but not among the tests themselves."""
    gc.set_threshold(GARBAGE)
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """What is left is looked at once: pytest itself does so five times at the end."""
    gc.collect()
    gc.freeze()


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
    """Groups go to one worker each, in the order of the tests.

    A scheduler of ours, as marks of groups do nothing in pytest-xdist 3.8 with
    pytest 9.2.
    """
    from xdist.scheduler import (  # type: ignore[import-untyped]  # it has none
        LoadScopeScheduling,
    )

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

        def mark_test_complete(
            self, node: Any, item_index: int, duration: float = 0
        ) -> None:
            """Forget what is done: all that is known is counted after each test."""
            nodeid = self.registered_collections[node][item_index]
            work, group = self.assigned_work[node], group_of(nodeid)
            del work[group][nodeid]
            if not work[group]:
                del work[group]
            self._reschedule(node)

    config.option.loadscopereorder = False
    return Grouped(config, log)


def group_of(nodeid: str) -> str:
    """The name of the tests that one worker runs, one after the other."""
    for name, group in GROUPS.items():
        if nodeid.startswith(name):
            return group
    # What tests of a file share is made once; but long ones are for several workers.
    alone = DEEP and not nodeid.startswith(SHORT)
    return nodeid if alone else nodeid.partition("::")[0]


def turn_of(nodeid: str) -> int:
    """When a test begins: groups first, then single ones, then files of short ones."""
    groups = list(dict.fromkeys(GROUPS.values()))
    group = group_of(nodeid)
    if group in groups:
        return groups.index(group)
    return len(groups) + nodeid.startswith(SHORT)


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
