"""Logging in and out, by token and by link, and what a token does not allow."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.web.conftest import Watch, log_in
from tests.web.site import Site

# Asking who one is, is refused while one is nobody; browsers say so on the console.
NOBODY = r"401 \(Unauthorized\)"


@pytest.fixture
def stranger(context: BrowserContext, watch: Watch) -> Page:
    """A page of somebody who has not logged in."""
    watch.expect(NOBODY)
    return context.new_page()


def test_a_token_opens_the_page_one_came_for(site: Site, stranger: Page) -> None:
    stranger.goto(f"{site.url}/ui/processes")
    field = stranger.get_by_label("Token")
    expect(field).to_be_focused()

    field.fill(f" {site.token} ")
    field.press("Enter")

    expect(stranger.get_by_role("heading", level=1)).to_have_text("Processes")
    expect(stranger.get_by_text("Log out")).to_be_visible()


def test_a_wrong_token_is_refused_and_said_so(site: Site, stranger: Page) -> None:
    stranger.goto(f"{site.url}/ui/")
    field = stranger.get_by_label("Token")

    field.fill("pk_wrong")
    field.press("Enter")

    expect(stranger.get_by_role("alert")).to_contain_text("not known here")
    expect(stranger.get_by_text("penstock token show")).to_be_visible()
    expect(field).to_have_value("pk_wrong")


def test_the_link_of_the_server_logs_in_and_leaves_no_token(
    site: Site, stranger: Page, context: BrowserContext
) -> None:
    stranger.goto(f"{site.url}/#token={site.token}")

    expect(stranger.get_by_role("heading", level=1)).to_have_text("Overview")
    assert stranger.url == f"{site.url}/ui/"
    history = context.new_cdp_session(stranger).send("Page.getNavigationHistory")
    assert [entry["url"] for entry in history["entries"]] == [
        "about:blank",
        f"{site.url}/ui/",
    ]


def test_a_link_with_a_stale_token_leads_to_the_login(
    site: Site, stranger: Page
) -> None:
    stranger.goto(f"{site.url}/#token=pk_stale")

    expect(stranger.get_by_label("Token")).to_be_visible()
    expect(stranger.get_by_role("status")).to_contain_text("not known here")


def test_who_logs_out_is_out(site: Site, page: Page, watch: Watch) -> None:
    watch.expect(NOBODY)
    page.goto(f"{site.url}/ui/")

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.reload()

    expect(page.get_by_label("Token")).to_be_visible()


def test_a_session_that_ended_takes_nothing_with_it(
    site: Site, page: Page, watch: Watch
) -> None:
    watch.expect(NOBODY)
    site.make_topic("notes")
    page.goto(f"{site.url}/ui/topics/notes?tab=comments")
    comment = page.get_by_role("textbox", name="Comment")
    comment.fill("three lines that nobody wants to type again")

    page.context.clear_cookies()
    page.get_by_role("button", name="Add the comment").click()
    again = page.get_by_role("dialog", name="Log in again")
    again.get_by_label("Token").fill(site.token)
    again.get_by_label("Token").press("Enter")

    expect(again).to_be_hidden()
    expect(comment).to_have_value("three lines that nobody wants to type again")
    page.get_by_role("button", name="Add the comment").click()
    expect(page.get_by_role("article")).to_contain_text("three lines")


def test_who_may_only_read_is_offered_nothing_else(
    site: Site, context: BrowserContext
) -> None:
    site.publish("prices", {"tea": 4.5})
    made = site.ask("/tokens", {"name": "looker", "scope": "read"})
    log_in(context, site, made["token"])
    page = context.new_page()

    page.goto(f"{site.url}/ui/topics/prices")

    expect(page.get_by_text("read only")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="4.5")).to_be_visible()
    expect(page.get_by_role("tab", name="Publish")).to_have_count(0)
    page.get_by_role("tab", name="Documentation").click()
    expect(page.get_by_text("Nobody has written")).to_be_visible()
    expect(page.get_by_role("button", name="Write it")).to_have_count(0)

    page.goto(f"{site.url}/ui/processes")
    expect(page.get_by_text("is shown to administrators")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
