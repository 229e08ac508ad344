"""A browser and a broker for tests of the dashboard.

Debian's Chromium (or what ``CHROMIUM`` names) is driven by Playwright; without it, or
without a built dashboard, these tests are skipped by name. Every test fails if the page
says an error on its console, throws, or asks for anything beyond loopback.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.serving import serving
from tests.web.site import Site

HERE = Path(__file__).parent
STATIC = HERE.parent.parent / "src" / "penstock" / "http" / "static"
NAMES = ("chromium", "chromium-browser", "google-chrome")
# Nothing of its own in the background: no updates, no lists, no guesses.
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
    "--no-pings",
    # Whatever is asked for all the same is not found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
LOOPBACK = re.compile(r"(?:https?|wss?)://(?:127\.0\.0\.1|localhost|\[::1\])[:/]")
PATIENCE_MS = 60_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.web)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For the tests of a file: while it is there, this thread has an event loop.

    Tests that come after it may want one of their own.
    """
    path = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), ""
    )
    if not path:
        pytest.skip("component: chromium (not installed)")
    if not (STATIC / "index.html").exists():
        pytest.skip("component: dashboard (not built, run make web)")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Site]:
    """A broker for all tests of a file."""
    with serving(tmp_path_factory.mktemp("site")) as server:
        yield Site(server)


class Watch:
    """What a page did that it may not do."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._expected: list[re.Pattern[str]] = []

    def expect(self, pattern: str) -> None:
        """Say that something of that form is part of the test."""
        self._expected.append(re.compile(pattern))

    def note(self, text: str) -> None:
        self.found.append(text)

    @property
    def unexpected(self) -> list[str]:
        return [
            text
            for text in self.found
            if not any(one.search(text) for one in self._expected)
        ]


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    assert watch.unexpected == []


@pytest.fixture
def context(browser: Browser, watch: Watch) -> Iterator[BrowserContext]:
    """A browser of one's own, at 1280 × 800, that nobody has logged in to."""
    with browser.new_context(
        viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
    ) as context:
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", lambda request: _seen(request, watch))
        context.on("weberror", lambda error: watch.note(f"thrown: {error.error}"))
        context.on("console", lambda message: _said(message, watch))
        context.on("dialog", lambda dialog: _asked(dialog, watch))
        yield context


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Page:
    """A page of somebody who has logged in with the admin token."""
    answer = context.request.post(f"{site.url}/v1/session", data={"token": site.token})
    assert answer.ok, answer.text()
    return context.new_page()


def _seen(request: Request, watch: Watch) -> None:
    if not LOOPBACK.match(request.url) and not request.url.startswith("data:"):
        watch.note(f"request beyond loopback: {request.url}")


def _said(message: ConsoleMessage, watch: Watch) -> None:
    if message.type == "error":
        watch.note(f"console: {message.text} ({message.location['url']})")


def _asked(dialog: Dialog, watch: Watch) -> None:
    watch.note(f"dialog: {dialog.message}")
    dialog.dismiss()
