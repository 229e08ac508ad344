"""A broker that goes away, and one that refuses: the page says so, and goes on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.serving import serving
from tests.web.conftest import Watch
from tests.web.site import Site


@pytest.fixture
def site(tmp_path: Path, browser: Browser) -> Iterator[Site]:
    """A broker that comes back at the same address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(tmp_path, "--http-port", str(port)) as server:
        yield Site(server)


@pytest.mark.parametrize("name", ["dead-letters", "subscribers", "flow", "processes"])
def test_a_broker_that_is_away_is_said_to_be_and_seen_when_it_is_back(
    site: Site, page: Page, watch: Watch, name: str
) -> None:
    watch.expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET")
    watch.expect("401")  # sessions end with the broker that began them
    site.publish("orders", {"n": 1})
    page.goto(f"{site.url}/ui/{name}")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()

    site.server.kill()
    expect(page.get_by_text("Live", exact=True)).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    site.server.start()
    answer = page.context.request.post(
        f"{site.url}/v1/session", data={"token": site.token}
    )
    assert answer.ok
    page.reload()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


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
    site.publish("orders", {"n": 1})
    site.fail("billing", "orders", "ValueError: no")
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
