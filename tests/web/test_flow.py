"""The Flow page: producers, topics and subscribers draw themselves."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.web.site import Site, eventually


def test_the_map_shows_who_publishes_who_receives_and_what_causes_what(
    site: Site, page: Page
) -> None:
    with site.shop("--orders", "100000", "--rate", "40"):
        page.goto(f"{site.url}/ui/flow")
        map_ = page.get_by_role("group", name="Map of producers, topics")

        # Drawn by itself, with rates.
        for name in (
            "topic orders",
            "topic payments",
            "subscriber billing",
        ):
            node = map_.get_by_role("link", name=re.compile(name))
            expect(node).to_contain_text(re.compile(r"[\d.]+/s"))
        expect(map_.locator(".edge.cause").first).to_be_attached()
        expect(map_.locator(".rate").first).to_have_text(re.compile(r"[\d.]+/s"))

        # What causes what can be left out.
        page.get_by_role("checkbox", name="causes").uncheck()
        expect(map_.locator(".edge.cause")).to_have_count(0)

        # A click goes to the page of what was clicked.
        map_.get_by_role("link", name=re.compile("topic payments")).click()
        expect(page).to_have_url(re.compile("/ui/topics/payments"))


def test_the_map_is_moved_zoomed_and_walked_by_keys(site: Site, page: Page) -> None:
    _subscribe(site, "walks", 3)
    page.goto(f"{site.url}/ui/flow")
    map_ = page.get_by_role("group", name="Map of producers, topics")
    first = map_.get_by_role("link").first
    expect(first).to_be_visible()
    before = first.bounding_box()
    assert before is not None

    first.focus()
    page.keyboard.press("+")
    larger = first.bounding_box()
    assert larger is not None and larger["width"] > before["width"] * 1.1
    page.keyboard.press("0")
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.getAttribute('data-node')")
    assert focused != first.get_attribute("data-node"), "an arrow goes to a neighbour"
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile("/ui/flow"))


def test_beyond_the_limit_there_is_a_list_and_a_filter_draws_a_part(
    site: Site, page: Page
) -> None:
    _subscribe(site, "many", 130)
    page.goto(f"{site.url}/ui/flow")

    expect(page.get_by_text("more than a map shows legibly")).to_be_visible()
    table = page.get_by_role("table", name="Who sends what to whom")
    expect(table).to_be_visible()

    page.get_by_role("searchbox", name="Filter by name").fill("many-12")
    map_ = page.get_by_role("group", name="Map of producers, topics")
    expect(
        map_.get_by_role("link", name=re.compile("subscriber many-127"))
    ).to_be_visible()


def _subscribe(site: Site, topic: str, many: int) -> None:
    site.publish(topic, {"n": 1})
    for number in range(many):
        path = f"/subscriptions/{topic}-{number}/{topic}/pull"
        site.ask(path, {"max": 1, "wait_s": 0, "start": "latest"})
    eventually(
        lambda: site.ask(f"/topics/{topic}")["subscriptions"] == many, "subscribed"
    )
