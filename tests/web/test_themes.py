"""Light and dark, as the system says or as somebody chooses."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.web.pages import PAGES, addresses, fill
from tests.web.site import Site

# How light the page's background is: 0 is black.
LIGHTNESS = """() => {
  const canvas = document.createElement('canvas').getContext('2d');
  canvas.fillStyle = getComputedStyle(document.documentElement).backgroundColor;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return (r + g + b) / 3;
}"""


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    fill(site)
    return site


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_dark_where_the_system_is(
    filled: Site, page: Page, name: str
) -> None:
    address = filled.url + addresses(filled)[name]
    shades: dict[str, float] = {}
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        shades[scheme] = page.evaluate(LIGHTNESS)

    assert shades["light"] > 200
    assert shades["dark"] < 60


def test_a_theme_that_was_chosen_stays_chosen(site: Site, page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(f"{site.url}/ui/flow")
    before = page.evaluate(LIGHTNESS)

    page.get_by_role("button", name="theme").click()
    chosen = page.evaluate(LIGHTNESS)
    page.reload()

    assert abs(chosen - before) > 100
    assert page.evaluate(LIGHTNESS) == chosen
