"""Everything without a mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.pages import addresses, fill
from tests.web.site import Site


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    fill(site)
    site.publish("parcels", {"n": 1}, {"n": 2}, {"n": 3})
    site.fail("carrier", "parcels", "ValueError: no street", many=3)
    return site


def test_g_and_a_letter_go_to_every_page(filled: Site, page: Page) -> None:
    page.goto(f"{filled.url}/ui/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    for key, heading in (
        ("s", "Subscribers"),
        ("d", "Dead letters"),
        ("f", "Flow"),
        ("q", "SQL"),
        ("p", "Pipeline"),
        ("c", "Processes"),
        ("o", "Overview"),
    ):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)


def test_the_desk_is_worked_with_keys_alone(filled: Site, page: Page) -> None:
    page.goto(f"{filled.url}/ui/dead-letters")
    expect(page.get_by_role("treeitem").first).to_be_visible()

    # Down to the first group, into it, to its second letter.
    page.keyboard.press("j")
    expect(page.get_by_role("article")).to_contain_text("no street")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("treeitem")).to_have_count(5)
    page.keyboard.press("j")
    page.keyboard.press("j")
    article = page.get_by_role("article")
    expect(article.get_by_role("button", name="Republish")).to_be_enabled()

    # A dry run, an edit that is given up, a drop with a reason.
    page.keyboard.press("d")
    expect(article).to_contain_text("would be republished")
    page.keyboard.press("e")
    field = page.get_by_role("textbox", name="Payload")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    page.keyboard.press("x")
    expect(page.get_by_role("dialog").get_by_role("textbox")).to_be_focused()
    page.keyboard.type("not needed")
    page.keyboard.press("Enter")
    expect(article).to_contain_text("dropped")

    # On with the next one, which has taken its place; then a look at the trail.
    expect(page.get_by_role("treeitem")).to_have_count(4)
    page.keyboard.press("j")
    expect(article.get_by_role("button", name="Republish")).to_be_enabled()
    page.keyboard.press("r")
    expect(article).to_contain_text("republished")
    page.keyboard.press("a")
    expect(page.get_by_role("listitem").filter(has_text="not needed")).to_be_visible()


def test_an_edit_is_written_and_sent_with_keys(filled: Site, page: Page) -> None:
    page.goto(filled.url + addresses(filled)["letter"])
    expect(page.get_by_role("button", name="Republish")).to_be_enabled()
    page.keyboard.press("e")
    expect(page.get_by_role("textbox", name="Payload")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"item": "tea", "amount": 4.5}')

    page.keyboard.press("Control+Enter")

    expect(page.get_by_role("article")).to_contain_text("edited and republished")


@pytest.mark.parametrize(
    "name", ["subscribers", "flow", "sql", "processes", "dead letters"]
)
def test_tab_reaches_everything_and_shows_where_it_is(
    filled: Site, page: Page, name: str
) -> None:
    page.goto(filled.url + addresses(filled)[name])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    seen: set[str] = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        said = page.evaluate(
            """() => {
              const one = document.activeElement;
              if (!one || one === document.body) return null;
              const style = getComputedStyle(one);
              const shape = getComputedStyle(one.querySelector('rect') ?? one);
              return [
                one.textContent.trim() || one.getAttribute('aria-label') || one.tagName,
                style.outlineStyle !== 'none' || parseFloat(shape.strokeWidth) >= 2,
              ];
            }"""
        )
        if said is None:
            break
        text, visible = said
        assert visible, f"one cannot see that {text!r} has the focus"
        seen.add(text)

    assert any(re.search("Overview", text) for text in seen), "the menu"
    assert len(seen) > 8
