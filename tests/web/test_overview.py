"""The overview: figures that move by themselves, and a line for every topic."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.serving import serving
from tests.web.conftest import Watch, log_in
from tests.web.site import Site, eventually, quoted

MANY = 300


@pytest.fixture(scope="module")
def shop(site: Site) -> Site:
    site.publish("orders", *({"n": number} for number in range(20)))
    site.publish("payments", {"n": 1})
    site.make_topic("quiet/one")
    site.fail("billing", "orders", "ValueError: no tax rate", many=2)
    return site


def test_every_topic_has_a_line(shop: Site, page: Page) -> None:
    page.goto(f"{shop.url}/ui/")

    orders = page.get_by_role("row").filter(has_text="orders")
    expect(orders).to_contain_text("20")
    expect(page.get_by_role("row").filter(has_text="quiet/one")).to_be_visible()
    figures = page.get_by_role("region", name="Figures")
    expect(figures.get_by_role("link", name="Dead letters")).to_contain_text("2")
    expect(page.get_by_role("link", name="Dead letters 2", exact=True)).to_be_visible()


def test_what_is_published_shows_without_asking(shop: Site, page: Page) -> None:
    page.goto(f"{shop.url}/ui/")
    row = page.get_by_role("row").filter(has_text="payments")
    expect(row.get_by_title("1 events", exact=True)).to_be_visible()

    shop.publish("payments", *({"n": number} for number in range(50)))

    expect(row.get_by_title("51 events", exact=True)).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()


def test_a_topic_that_is_made_appears(shop: Site, page: Page) -> None:
    page.goto(f"{shop.url}/ui/")
    expect(page.get_by_role("row").filter(has_text="orders")).to_be_visible()

    shop.make_topic("brand new")

    expect(page.get_by_role("link", name="brand new")).to_be_visible()


def test_topics_are_filtered_and_sorted(shop: Site, page: Page) -> None:
    page.goto(f"{shop.url}/ui/")
    names = page.get_by_role("table", name="Topics").locator("tbody a")
    expect(names.filter(has_text="orders")).to_be_visible()

    page.get_by_role("button", name="Topic", exact=True).click()
    first = names.first.inner_text()
    page.get_by_role("button", name="Topic", exact=True).click()
    expect(names.last).to_have_text(first)

    page.keyboard.press("f")
    page.keyboard.type("QUIET")
    expect(names).to_have_text(["quiet/one"])
    page.keyboard.type("x")
    expect(page.get_by_text("No topic has “QUIETx” in its name")).to_be_visible()
    page.get_by_role("button", name="Show all topics").click()
    expect(names.filter(has_text="orders")).to_be_visible()


def test_a_topic_is_made_and_opened_with_keys(shop: Site, page: Page) -> None:
    page.goto(f"{shop.url}/ui/")
    expect(page.get_by_role("row").filter(has_text="orders")).to_be_visible()

    page.keyboard.press("n")
    page.keyboard.type("hand made")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("hand made")

    page.keyboard.press("/")
    page.keyboard.type("orders")
    expect(page.get_by_role("option", selected=True)).to_contain_text("orders")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Next row")


def test_rows_are_walked_and_opened_with_keys(shop: Site, page: Page) -> None:
    page.goto(f"{shop.url}/ui/?search=orders")
    expect(page.get_by_role("row").filter(has_text="orders")).to_be_visible()

    page.keyboard.press("j")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("orders")


def test_an_event_is_found_by_its_id(shop: Site, page: Page) -> None:
    event = shop.ask("/topics/orders/events?offset=7&limit=1")["events"][0]
    page.goto(f"{shop.url}/ui/")
    expect(page.get_by_role("row").filter(has_text="orders")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.insert_text(event["id"])
    expect(page.get_by_role("option").filter(has_text="orders 7")).to_be_visible()
    page.keyboard.press("Enter")

    page.wait_for_url("**/ui/events/orders/7")


def test_a_broker_that_hangs_is_told_and_comes_back(
    shop: Site, page: Page, watch: Watch
) -> None:
    watch.expect("net::|Failed to load resource")
    page.goto(f"{shop.url}/ui/")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()

    os.kill(shop.server.pid, signal.SIGSTOP)
    try:
        expect(page.get_by_text("Connection lost.")).to_be_visible()
    finally:
        os.kill(shop.server.pid, signal.SIGCONT)

    expect(page.get_by_text("Connection lost.")).to_be_hidden()
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()


def test_of_many_topics_only_those_in_view_are_drawn(shop: Site, page: Page) -> None:
    for number in range(MANY):
        shop.make_topic(f"many/{number:03d}")
    page.goto(f"{shop.url}/ui/?search=many")
    rows = page.get_by_role("table", name="Topics").locator("tbody tr.data")
    expect(page.get_by_role("link", name="many/000")).to_be_visible()

    assert rows.count() < 100
    last = page.get_by_role("link", name=f"many/{MANY - 1}")

    def reached() -> bool:
        page.keyboard.press("End")  # of the list as it is by now
        return last.is_visible()

    eventually(reached)
    expect(last).to_be_in_viewport()
    assert rows.count() < 100


def test_an_empty_broker_says_what_to_do(
    tmp_path: Path, context: BrowserContext
) -> None:
    with serving(tmp_path, "--no-maze") as server:
        site = Site(server)
        log_in(context, site)
        page = context.new_page()

        page.goto(f"{site.url}/ui/")

        expect(page.get_by_text("There are no topics yet")).to_be_visible()
        expect(page.get_by_text("penstock publish hello")).to_be_visible()
        page.goto("about:blank")


def test_an_address_of_no_page_leads_back(shop: Site, page: Page) -> None:
    page.goto(f"{shop.url}/ui/{quoted('no/such page')}")

    expect(page.get_by_text("There is no such page")).to_be_visible()
    page.get_by_role("link", name="Go to the overview").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
