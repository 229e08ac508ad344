"""The Processes page: the broker, its versions, and every setting with its origin."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.web.site import Site


def test_the_broker_is_shown_with_what_it_costs(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/ui/processes")

    row = page.get_by_role("row").filter(has_text=f"broker {site.server.pid}")

    expect(row).to_contain_text("ready")
    expect(row).to_contain_text(re.compile(r"MiB|GiB"))
    expect(row).to_contain_text(re.compile(r"\d\s?%"))
    versions = page.get_by_role("region", name="Versions")
    expect(versions).to_contain_text("penstock")
    expect(versions).to_contain_text("python")


def test_settings_say_where_they_come_from_and_are_filtered(
    site: Site, page: Page
) -> None:
    page.goto(f"{site.url}/ui/processes")
    config = page.get_by_role("region", name="Configuration")
    rows = config.get_by_role("row")
    expect(rows.filter(has_text="listen.line_port")).to_contain_text("flag")

    config.get_by_role("searchbox").fill("json pub_tries")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("json.pub_tries")
    expect(rows.nth(1)).to_contain_text("default")

    config.get_by_role("checkbox", name="only changed").check()
    expect(config).to_contain_text("No setting fits")


def test_no_secret_is_shown(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/ui/processes")
    expect(page.get_by_role("region", name="Configuration")).to_be_visible()

    assert site.token not in page.content()
