"""A broker that goes away, and one that refuses: the page says so, and goes on."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.serving import serving
from tests.web.conftest import Chromium, Watch, log_in
from tests.web.site import Site


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, chromium: Chromium
) -> Iterator[Site]:
    """A broker that comes back at the same address, with a letter 0."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("site")
    with serving(folder, "--http-port", str(port)) as server:
        site = Site(server)
        site.publish("orders", {"n": 1})
        site.fail("billing", "orders", "ValueError: no")
        yield site


def test_a_broker_that_is_away_is_said_to_be_and_seen_when_it_is_back(
    site: Site, page: Page, watch: Watch
) -> None:
    """On several pages at once, each in a tab of its own."""
    watch.expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET")
    watch.expect("401")  # sessions end with the broker that began them
    names = ("dead-letters", "subscribers", "flow", "processes")
    with contextlib.ExitStack() as closing:
        tabs = [page, *(closing.enter_context(page.context.new_page()) for _ in "123")]
        for tab, name in zip(tabs, names, strict=True):
            tab.goto(f"{site.url}/ui/{name}")
            expect(tab.get_by_text("Live", exact=True)).to_be_visible()

        site.server.kill()
        for tab in tabs:
            expect(tab.get_by_text("Live", exact=True)).to_be_hidden()
            expect(tab.get_by_role("heading", level=1)).to_be_visible()

        site.server.start()
        log_in(page.context, site)
        for tab in tabs:
            tab.reload()
            expect(tab.get_by_text("Live", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("/ui/dead-letters", "**/v1/dead-letters/groups*"),
        ("/ui/dead-letters?letter=0", "**/v1/dead-letters/0"),
        ("/ui/dead-letters?tab=audit", "**/v1/dead-letters/audit*"),
        ("/ui/subscribers", "**/v1/subscriptions*"),
        ("/ui/pipeline", "**/v1/pipeline"),
        ("/ui/processes", "**/v1/processes"),
    ],
)
def test_a_refusal_is_told_in_the_brokers_words_with_a_way_on(
    site: Site, page: Page, watch: Watch, address: str, asked: str
) -> None:
    watch.expect("503")
    refusing = True

    def answer(route: Route) -> None:
        if not refusing:
            route.continue_()
            return
        problem = {"title": "Busy", "status": 503, "detail": "64 MiB are to be written"}
        route.fulfill(status=503, json=problem)

    page.route(asked, answer)
    page.goto(site.url + address)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("64 MiB are to be written")

    refusing = False
    alert.get_by_role("button", name="Try again").click()
    expect(alert).to_be_hidden()


def test_a_letter_that_does_not_exist_is_said_to(
    site: Site, page: Page, watch: Watch
) -> None:
    watch.expect("404")

    page.goto(f"{site.url}/ui/dead-letters?letter=4711")

    expect(page.get_by_role("alert")).to_contain_text("4711")
