"""The dead-letter desk: from a handler that fails to an event that is settled."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.web.conftest import log_in
from tests.web.site import Site, eventually
from tests.wire_client import Wire


def test_a_failed_event_is_explained_edited_sent_again_and_settled(
    site: Site, page: Page
) -> None:
    """The whole story, as somebody lives it who is called because of an error."""
    with site.shop():
        site.publish(
            "orders", {"item": "tea", "amount": "4.50", "number": 9007199254740993}
        )
        eventually(site.letters, "a dead letter")

        # What failed, and why.
        page.goto(f"{site.url}/ui/dead-letters")
        group = page.get_by_role("treeitem", name=re.compile("TypeError"))
        group.click()
        expect(page.get_by_role("region", name="Traceback")).to_contain_text("cents_of")
        page.get_by_role("link", name="Look at the newest").click()
        letter = page.get_by_role("article", name=re.compile("Letter"))
        expect(letter).to_contain_text("gave up on event 0 of orders after 2 tries")

        # The payload is edited, and the difference is seen.
        letter.get_by_role("button", name="Edit…").click()
        field = page.get_by_role("textbox", name="Payload")
        text = field.input_value()
        assert '"amount": "4.50"' in text
        assert "9007199254740993" in text, "long numbers stay what they are"
        send = page.get_by_role("button", name="Send edited event")
        expect(send).to_be_disabled()
        field.fill(text.replace('"4.50"', "4.5,"))
        expect(page.get_by_text("JSON")).not_to_have_count(0)
        expect(send).to_be_disabled()
        field.fill(text.replace('"4.50"', "4.5"))
        diff = page.get_by_role("region", name="Changes to the payload")
        expect(diff).to_contain_text('"amount": "4.50"')
        expect(diff).to_contain_text('"amount": 4.5')
        page.get_by_role("textbox", name="Why").fill("amount was text")

        # Dry first, which changes nothing.
        page.get_by_role("button", name="Dry run").click()
        expect(page.get_by_text("would be edited and republished")).to_be_visible()
        assert [one["status"] for one in site.letters()] == ["open"]

        # Then for good.
        send.click()
        expect(letter.get_by_text("settled")).to_be_visible()
        expect(letter).to_contain_text("republished")
        assert site.letters() == []

        # And the trail says who did it.
        page.get_by_role("tab", name="Audit trail").click()
        entry = page.get_by_role("listitem").filter(has_text="amount was text")
        expect(entry).to_contain_text("admin")
        expect(entry).to_contain_text("edited")
        entry.get_by_text("the change").click()
        expect(entry.get_by_role("region")).to_contain_text("4.50")

    (payment,) = site.ask("/topics/payments/events?tail=10")["events"]
    assert payment["payload"] == {"cents": 450}
    (order,) = site.ask("/topics/orders/events?tail=10")["events"]
    assert order["payload"]["amount"] == "4.50", "the topic keeps what was published"


def test_a_group_is_sent_again_at_a_rate_with_progress(site: Site, page: Page) -> None:
    site.publish("parcels", *({"number": n} for n in range(40)))
    site.fail("carrier", "parcels", "ValueError: no street 17", many=40)

    page.goto(f"{site.url}/ui/dead-letters?subscriber=carrier")
    page.get_by_role("treeitem", name=re.compile("no street")).click()
    page.get_by_role("button", name="Republish all…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Dry run").click()
    expect(dialog.get_by_role("status")).to_contain_text("40 would be republished")
    assert len(site.letters(subscriber="carrier")) == 40

    dialog.get_by_role("combobox", name="How fast").select_option("1 a second")
    dialog.get_by_role("button", name="Republish 40 letters").click()
    task = page.get_by_role("region", name="Task")
    expect(task.get_by_role("progressbar")).to_be_visible()
    expect(task).to_contain_text(re.compile(r"\b[1-9]\d? of 40\s+republished"))
    assert 0 < len(site.letters(subscriber="carrier")) < 40, "some at a time"

    task.get_by_role("button", name="Stop").click()
    expect(task).to_contain_text("Stopped")
    left = len(site.letters(subscriber="carrier"))
    assert 0 < left < 40

    # Run again it goes on with those that are left.
    page.get_by_role("button", name="Republish all…").click()
    dialog.get_by_role("combobox", name="How fast").select_option("as fast as it goes")
    dialog.get_by_role("button", name=f"Republish {left} letters").click()
    expect(task).to_contain_text(f"{left} of {left} republished")
    assert site.letters(subscriber="carrier") == []


def test_letters_are_dropped_for_a_reason(site: Site, page: Page) -> None:
    site.publish("notes", {"n": 1}, {"n": 2})
    site.fail("reader", "notes", "KeyError: 'title'", many=2)

    page.goto(f"{site.url}/ui/dead-letters?subscriber=reader")
    page.get_by_role("treeitem", name=re.compile("KeyError|title")).click()
    page.get_by_role("button", name="Drop all…").click()
    dialog = page.get_by_role("dialog")
    drop = dialog.get_by_role("button", name="Drop 2 letters")
    expect(drop).to_be_disabled()
    dialog.get_by_role("textbox", name="Why").fill("old client")
    drop.click()

    expect(page.get_by_role("region", name="Task")).to_contain_text("2 of 2 dropped")
    eventually(lambda: site.letters(subscriber="reader") == [], "no open letters")
    page.goto(f"{site.url}/ui/dead-letters?tab=audit")
    entry = page.get_by_role("listitem").filter(has_text="old client")
    expect(entry).to_contain_text("2 letters")


def test_raw_input_cannot_be_sent_but_is_shown_and_dropped(
    site: Site, page: Page
) -> None:
    with Wire(site.server.ports["publisher"]) as client:
        client.say("this is no message")
        eventually(lambda: site.letters(gateway="json"), "a letter of raw input")

    page.goto(f"{site.url}/ui/dead-letters")
    page.get_by_role("treeitem", name=re.compile("Raw input")).click()
    expect(page.get_by_role("button", name="Republish it…")).to_be_disabled()
    page.get_by_role("link", name="Look at the newest").click()
    letter = page.get_by_role("article")
    expect(letter).to_contain_text("this is no message")
    expect(letter).to_contain_text("It never became an event")
    letter.get_by_role("button", name="Drop…").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("noise")
    page.get_by_role("dialog").get_by_role("button", name="Drop", exact=True).click()
    expect(letter).to_contain_text("dropped")


def test_a_letter_that_came_is_seen_without_loading_anew(
    site: Site, page: Page
) -> None:
    page.goto(f"{site.url}/ui/dead-letters")
    expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()
    site.publish("news", {"n": 1})

    site.fail("paper", "news", "RuntimeError: out of ink")

    expect(page.get_by_role("treeitem", name=re.compile("out of ink"))).to_be_visible()


def test_what_somebody_else_did_meanwhile_is_said(site: Site, page: Page) -> None:
    site.publish("races", {"n": 1})
    site.fail("runner", "races", "ValueError: fell")
    number = max(one["number"] for one in site.letters())
    page.goto(f"{site.url}/ui/dead-letters?letter={number}")
    button = page.get_by_role("button", name="Republish")
    expect(button).to_be_enabled()
    site.ask("/dead-letters/republish", {"numbers": [number]})

    button.click()

    expect(page.get_by_role("article")).to_contain_text("republished before")


def test_who_may_only_read_sees_everything_and_changes_nothing(
    site: Site, context: BrowserContext
) -> None:
    site.publish("looks", {"n": 1})
    site.fail("looker", "looks", "ValueError: blind")
    (letter,) = site.letters(subscriber="looker")
    made = site.ask("/tokens", {"name": "guest", "scope": "read"})
    log_in(context, site, made["token"])
    page = context.new_page()

    page.goto(f"{site.url}/ui/dead-letters?letter={letter['number']}")

    article = page.get_by_role("article")
    expect(article).to_contain_text("blind")
    expect(article).to_contain_text("This session may only read")
    for name in ("Republish", "Edit…", "Dry run", "Drop…"):
        expect(article.get_by_role("button", name=name)).to_be_disabled()
    page.keyboard.press("r")
    page.keyboard.press("x")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert [one["status"] for one in site.letters(subscriber="looker")] == ["open"]


def test_letters_are_listed_the_newest_first_and_closed_ones_are_found(
    site: Site, page: Page
) -> None:
    site.publish("returns", *({"number": n} for n in range(3)))
    site.fail("desk", "returns", "ValueError: no address", many=3)
    oldest, middle, newest = [one["number"] for one in site.letters(subscriber="desk")]
    page.goto(f"{site.url}/ui/dead-letters?subscriber=desk&letter={middle}")
    rows = page.get_by_role("treeitem", level=2)
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text(f"#{newest}")
    expect(rows.last).to_contain_text(f"#{oldest}")

    site.ask("/dead-letters/drop", {"numbers": [middle], "reason": "by phone"})
    page.get_by_role("tab", name="Closed").click()

    table = page.get_by_role("table", name="Closed letters")
    closed = table.get_by_role("row").filter(has_text="ValueError")
    expect(closed).to_have_count(1)
    expect(closed).to_contain_text("dropped")
    letter = page.get_by_role("article", name=re.compile("Letter"))
    expect(letter).to_contain_text("by phone")
