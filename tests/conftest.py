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

Several workers (``-n 2 --dist loadgroup``) share the tests, but those that share
something dear, and all of Spark's, stay together: see ``group_of``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

COMPONENT = "component:"
# Fixtures that take seconds to make: one worker makes them, for all who ask.
DEAR = ("mongodb_url", "postgres_url", "wheel")
SPARK = Path(__file__).with_name("spark")

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if (group := group_of(item)) is not None:
                item.add_marker(pytest.mark.xdist_group(group))


def group_of(item: pytest.Item) -> str | None:
    """The name of the tests that one worker runs, one after the other."""
    if item.path.is_relative_to(SPARK):
        return "spark"
    names = getattr(item, "fixturenames", ())
    return next((name for name in DEAR if name in names), None)


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
