"""At 400 pixels nothing is cut off, and everything can be reached."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.pages import PAGES, addresses, fill
from tests.web.site import Site

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


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    fill(site)
    return site


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_into_400_pixels(filled: Site, page: Page, name: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(filled.url + addresses(filled)[name])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)

    assert page.evaluate(STICKING_OUT) == []
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 400


def test_a_letter_is_mended_on_a_telephone(filled: Site, page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{filled.url}/ui/dead-letters")
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
