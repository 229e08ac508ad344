"""No page has a serious fault that axe can find, in light and in dark."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.web.conftest import Watch
from tests.web.pages import PAGES, addresses, fill
from tests.web.site import Site

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
SERIOUS = ("serious", "critical")

pytestmark = pytest.mark.skipif(
    not AXE.exists(), reason="component: axe-core (not installed)"
)


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    fill(site)
    return site


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(
    filled: Site, page: Page, name: str, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(filled.url + addresses(filled)[name])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)

    assert faults(page) == []


def test_axe_finds_nothing_serious_on_the_login_page(
    site: Site, context: BrowserContext, watch: Watch
) -> None:
    watch.expect("401")
    page = context.new_page()
    page.goto(f"{site.url}/ui/")
    expect(page.get_by_role("heading").first).to_be_visible()

    assert faults(page) == []


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


def faults(page: Page) -> list[str]:
    """What axe calls serious or critical: rule, and where."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]
