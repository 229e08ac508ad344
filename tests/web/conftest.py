"""A browser and a broker for tests of the dashboard.

Debian's Chromium (or what ``CHROMIUM`` names) is driven by Playwright; without it, or
without a built dashboard, these tests are skipped by name. Every test fails if the page
says an error on its console, throws, or asks for anything beyond loopback.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
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
TIDY_MS = 10_000
SIZE: ViewportSize = {"width": 1280, "height": 800}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.web)
            item.add_marker(pytest.mark.slow)


class Chromium:
    """One browser for all tests of this folder, with a window that is used again.

    A new window costs a second of work, a page in one that is there a third of it.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._window: Page | None = None

    def own_context(self) -> BrowserContext:
        """A browser of one's own, at 1280 × 800, that nobody has logged in to."""
        context = self.browser.new_context(viewport=SIZE, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        return context

    def window(self) -> Page:
        """The window that tests take turns with, as new."""
        if self._window is None:
            self._window = self.own_context().new_page()
        return self._window

    def tidy(self, site: Site) -> None:
        """Undo what a test may have done to the window, or leave it for a new one."""
        page = self.window()
        self._window = None
        try:
            page.unroute_all(behavior="ignoreErrors")
            page.goto("about:blank", timeout=TIDY_MS)
            tools = page.context.new_cdp_session(page)
            tools.send(
                "Storage.clearDataForOrigin",
                {"origin": site.url, "storageTypes": "all"},
            )
            tools.send("Page.resetNavigationHistory")
            tools.detach()
            page.context.clear_cookies()
            page.emulate_media(color_scheme="null")
            page.set_viewport_size(SIZE)
            self._window = page
        finally:
            if self._window is None:
                page.context.close()


CHROMIUM = pytest.StashKey[Chromium]()


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Chromium:
    """The browser of all tests of this folder.

    It ends with the last of them, and not with the run: while it is there, this thread
    has an event loop, and tests that come after it may want one of their own.
    """
    folder = next(one for one in request.node.iter_parents() if one.path == HERE)
    if CHROMIUM not in folder.stash:
        closing = contextlib.ExitStack()
        folder.stash[CHROMIUM] = Chromium(closing.enter_context(_launched()))

        def end() -> None:
            del folder.stash[CHROMIUM]
            closing.close()

        folder.addfinalizer(end)
    return folder.stash[CHROMIUM]


@contextlib.contextmanager
def _launched() -> Iterator[Browser]:
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
def site(
    tmp_path_factory: pytest.TempPathFactory, chromium: Chromium
) -> Iterator[Site]:
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
def context(chromium: Chromium, watch: Watch) -> Iterator[BrowserContext]:
    """A browser of one's own, at 1280 × 800, that nobody has logged in to."""
    with chromium.own_context() as context, _watched(context, watch):
        yield context


@pytest.fixture
def page(chromium: Chromium, watch: Watch, site: Site) -> Iterator[Page]:
    """A page of somebody who has logged in with the admin token."""
    page = chromium.window()
    with _watched(page.context, watch):
        log_in(page.context, site)
        yield page
    chromium.tidy(site)


def log_in(context: BrowserContext, site: Site, token: str = "") -> None:
    """Have a browser be somebody: whose token it is, or the administrator."""
    said = {"token": token or site.token}
    answer = context.request.post(f"{site.url}/v1/session", data=said)
    assert answer.ok, answer.text()


@contextlib.contextmanager
def _watched(context: BrowserContext, watch: Watch) -> Iterator[None]:
    listeners: dict[Any, Callable[[Any], None]] = {
        "request": lambda request: _seen(request, watch),
        "weberror": lambda error: watch.note(f"thrown: {error.error}"),
        "console": lambda message: _said(message, watch),
        "dialog": lambda dialog: _asked(dialog, watch),
    }
    for name, listener in listeners.items():
        context.on(name, listener)
    try:
        yield
    finally:
        for name, listener in listeners.items():
            context.remove_listener(name, listener)


def _seen(request: Request, watch: Watch) -> None:
    if not LOOPBACK.match(request.url) and not request.url.startswith("data:"):
        watch.note(f"request beyond loopback: {request.url}")


def _said(message: ConsoleMessage, watch: Watch) -> None:
    if message.type == "error":
        watch.note(f"console: {message.text} ({message.location['url']})")


def _asked(dialog: Dialog, watch: Watch) -> None:
    watch.note(f"dialog: {dialog.message}")
    dialog.dismiss()
