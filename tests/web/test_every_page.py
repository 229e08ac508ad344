"""Every page: no serious fault that axe can find, light or dark, and on a telephone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.web.conftest import Watch
from tests.web.pages import PAGES, addresses, fill
from tests.web.site import Site

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
SERIOUS = ("serious", "critical")
# How light the page's background is: 0 is black.
LIGHTNESS = """() => {
  const canvas = document.createElement('canvas').getContext('2d');
  canvas.fillStyle = getComputedStyle(document.documentElement).backgroundColor;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return (r + g + b) / 3;
}"""
LIGHT = 200
DARK = 60
# Elements that stick out of the window, unless something around them scrolls.
STICKING_OUT = """() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (one) => {
    for (let box = one; box; box = box.parentElement) {
      const style = getComputedStyle(box);
      if (/auto|scroll|hidden|clip/.test(style.overflowX) || style.position === 'fixed')
        return true;
    }
    return false;
  };
  return [...document.querySelectorAll('main *')]
    .filter((one) => one.getBoundingClientRect().right > wide + 1 && !scrolls(one))
    .map((one) => one.outerHTML.slice(0, 120));
}"""

axe = pytest.mark.skipif(not AXE.exists(), reason="component: axe-core (not installed)")


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    fill(site)
    return site


@axe
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_serious_fault_that_axe_finds_light_or_dark(
    filled: Site, page: Page, name: str
) -> None:
    """Loaded where the system is dark; then the system becomes light."""
    page.emulate_media(color_scheme="dark")
    visit(page, filled.url + addresses(filled)[name])
    assert page.evaluate(LIGHTNESS) < DARK
    assert faults(page) == [], "in the dark"

    page.emulate_media(color_scheme="light")
    assert page.evaluate(LIGHTNESS) > LIGHT
    assert faults(page) == [], "in the light"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_into_400_pixels(filled: Site, page: Page, name: str) -> None:
    """Nothing is cut off, and everything can be reached."""
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 400, "height": 800})
    visit(page, filled.url + addresses(filled)[name])

    assert page.evaluate(LIGHTNESS) > LIGHT
    assert page.evaluate(STICKING_OUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@axe
def test_axe_finds_nothing_serious_on_the_login_page(
    site: Site, context: BrowserContext, watch: Watch
) -> None:
    watch.expect("401")
    page = context.new_page()
    page.goto(f"{site.url}/ui/")
    expect(page.get_by_role("heading").first).to_be_visible()

    assert faults(page) == []


@axe
def test_axe_finds_nothing_serious_in_dialogs_and_the_editor(
    filled: Site, page: Page
) -> None:
    page.goto(filled.url + addresses(filled)["letter"])
    page.get_by_role("button", name="Drop…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert faults(page) == []

    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit…").click()
    field = page.get_by_role("textbox", name="Payload")
    field.fill(field.input_value().replace("tea", "coffee"))
    expect(page.get_by_role("region", name="Changes to the payload")).to_be_visible()
    assert faults(page) == []


def test_a_theme_that_was_chosen_stays_chosen(site: Site, page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(f"{site.url}/ui/flow")
    before = page.evaluate(LIGHTNESS)

    page.get_by_role("button", name="theme").click()
    chosen = page.evaluate(LIGHTNESS)
    page.reload()

    assert abs(chosen - before) > 100
    assert page.evaluate(LIGHTNESS) == chosen


def test_a_letter_is_mended_on_a_telephone(filled: Site, page: Page) -> None:
    topic = "parcels"
    filled.publish(topic, {"item": "tea", "amount": "4.50"})
    filled.fail("carrier", topic, "ValueError: no street")
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{filled.url}/ui/dead-letters?subscriber=carrier")
    group = page.get_by_role("treeitem").first
    group.click()

    # The list makes room for what was chosen, and comes back.
    expect(page.get_by_role("button", name=re.compile("Republish"))).to_be_visible()
    expect(group).to_be_hidden()
    page.get_by_role("button", name="All groups").click()
    expect(group).to_be_visible()

    group.click()
    page.get_by_role("link", name="Look at the newest").click()
    page.get_by_role("button", name="Edit…").click()
    field = page.get_by_role("textbox", name="Payload")
    field.fill('{"item": "tea", "amount": 4.5}')
    page.get_by_role("button", name="Send edited event").click()
    expect(page.get_by_role("article")).to_contain_text("edited and republished")


def visit(page: Page, address: str) -> None:
    """Go to a page, and wait until it is there."""
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)


def faults(page: Page) -> list[str]:
    """What axe calls serious or critical: rule, and where."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]
