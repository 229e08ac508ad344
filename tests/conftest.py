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
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

COMPONENT = "component:"

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
