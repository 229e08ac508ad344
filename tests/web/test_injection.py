"""What others wrote is shown and never run, wherever it is shown."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.web.site import Site, quoted

RUN = "window.ran = (window.ran || 0) + 1"
EVIL = (
    f"<script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f'"><svg onload="{RUN}">',
    f'<a href="javascript:{RUN.replace(" ", "")}">x</a>',
    "{{constructor.constructor('window.ran=1')()}}",
)
NAME = "<img src=x onerror=window.ran=1>"


@pytest.fixture(scope="module")
def poisoned(site: Site) -> Site:
    """Evil in payloads, ids, keys, headers, names, reasons, documentation, comments."""
    site.make_topic(NAME)
    path = f"/topics/{quoted(NAME)}"
    for number, evil in enumerate(EVIL):
        event = {
            "payload": {evil: [evil, {"deep": evil}]},
            "id": f"{number}{evil}"[:200],
            "key": evil,
            "headers": {"note": evil, "type": evil},
        }
        site.ask(f"{path}/events", event)
        site.ask(f"{path}/events", {"text": evil})
        site.ask(f"{path}/comments", {"text": evil})
    text = "# doc\n\n" + "\n\n".join(EVIL) + f"\n\n[x](javascript:{RUN})"
    site.ask(f"{path}/documentation", {"text": text}, method="PUT")
    for evil in EVIL[:3]:
        site.fail(NAME, NAME, f"ValueError: {evil}", many=1)
    number = site.letters()[0]["number"]
    body = {"text": json.dumps({"edited": EVIL[1]}), "reason": EVIL[1]}
    site.ask(f"/dead-letters/{number}/edit", body)
    return site


ADDRESSES = (
    "/ui/",
    f"/ui/topics/{quoted(NAME)}",
    f"/ui/topics/{quoted(NAME)}?tab=docs",
    f"/ui/topics/{quoted(NAME)}?tab=comments",
    f"/ui/topics/{quoted(NAME)}?tab=subscriptions",
    f"/ui/events/{quoted(NAME)}/0",
    f"/ui/events/{quoted(NAME)}/1",
    f"/ui/subscribers?open={quoted(NAME + chr(10) + NAME)}",
    "/ui/dead-letters",
    "/ui/dead-letters?letter=1",
    "/ui/dead-letters?tab=audit",
    "/ui/flow",
    "/ui/flow?view=list",
    f"/ui/flow?view={quoted(EVIL[1])}",
    f"/ui/{quoted(EVIL[1])}",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_evil_runs(poisoned: Site, page: Page, address: str) -> None:
    page.goto(poisoned.url + address)
    expect(page.get_by_role("main")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    for one in page.locator("main details > summary").all():
        one.click()

    assert page.evaluate("window.ran") is None
    inside = "main script, main img[src=x], main svg[onload], main [href^='javascript']"
    assert page.locator(inside).count() == 0


def test_the_desk_shows_evil_as_text(poisoned: Site, page: Page) -> None:
    page.goto(f"{poisoned.url}/ui/dead-letters?letter=1")

    expect(page.get_by_role("article")).to_contain_text("onerror=")
    page.get_by_role("button", name="Edit…").click()
    field = page.get_by_role("textbox", name="Payload")
    field.fill(json.dumps(EVIL))
    expect(page.get_by_role("region", name="Changes")).to_contain_text("<script>")
    page.get_by_role("button", name="Dry run").click()
    expect(page.get_by_text("would be edited")).to_be_visible()

    assert page.evaluate("window.ran") is None


def test_the_policy_of_the_page_forbids_scripts_of_others(
    site: Site, context: BrowserContext
) -> None:
    answer = context.request.get(f"{site.url}/ui/")

    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-inline" not in policy.replace("style-src", "")
