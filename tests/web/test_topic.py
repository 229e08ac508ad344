"""A topic: browsing, searching, publishing, and what people write about it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.web.conftest import Watch
from tests.web.site import Site, quoted

TOPIC = "shop/orders"
LONG = 1844674407370955161
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "name": {"type": "string"}},
    "required": ["n"],
}


@pytest.fixture(scope="module")
def shop(site: Site) -> Site:
    orders = [
        {
            "payload": {"n": number, "city": "Graz" if number % 10 == 3 else "Wien"},
            "key": f"customer-{number % 7}",
            "headers": {"type": "order.placed" if number % 2 else "order.changed"},
        }
        for number in range(250)
    ]
    site.make_topic(TOPIC)
    site.ask(f"/topics/{quoted(TOPIC)}/events", orders)
    return site


def address(site: Site, more: str = "", topic: str = TOPIC) -> str:
    return f"{site.url}/ui/topics/{quoted(topic)}{more}"


def table(page: Page) -> Locator:
    return page.get_by_role("table", name="Events")


def offsets(page: Page) -> Locator:
    """Those that are drawn, the newest first."""
    return table(page).locator("tbody td:first-child a")


def test_the_newest_events_come_first_and_older_ones_behind(
    shop: Site, page: Page
) -> None:
    page.goto(address(shop))
    expect(offsets(page).first).to_have_text("249")
    expect(table(page)).to_have_attribute("aria-rowcount", "100")

    page.get_by_role("button", name="Older").click()
    expect(offsets(page).first).to_have_text("149")
    page.keyboard.press("[")
    expect(offsets(page).first).to_have_text("99")
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    page.keyboard.press("]")
    expect(offsets(page).first).to_have_text("199")
    page.go_back()
    expect(offsets(page).first).to_have_text("99")
    page.keyboard.press("End")
    expect(offsets(page).last).to_have_text("0")


def test_one_jumps_to_an_offset_or_a_time(shop: Site, page: Page) -> None:
    page.goto(address(shop))
    field = page.get_by_label("From this offset or time on")

    field.fill("217")
    field.press("Enter")
    expect(offsets(page).last).to_have_text("217")

    field.fill("2001-01-01 12:00")
    field.press("Enter")
    expect(offsets(page).first).to_have_text("99")
    expect(field).to_have_value("2001-01-01 12:00:00")
    field.fill("tomorrow-ish")
    field.press("Enter")
    expect(page.get_by_text("neither an offset nor a time")).to_be_visible()


def test_events_are_searched_by_payload_key_type_and_id(shop: Site, page: Page) -> None:
    page.goto(address(shop))
    expect(offsets(page).first).to_have_text("249")

    page.keyboard.press("f")
    page.keyboard.type("city=Graz n>200")
    page.keyboard.press("Enter")
    expect(offsets(page)).to_have_text(["243", "233", "223", "213", "203"])
    expect(page.get_by_text("5 events found among 250")).to_be_visible()

    page.goto(address(shop, "?type=order.placed&key=customer-3"))
    expect(offsets(page)).to_have_count(18)
    event = shop.ask(f"/topics/{quoted(TOPIC)}/events?offset=42&limit=1")["events"][0]
    page.goto(address(shop, f"?id={event['id']}"))
    expect(offsets(page)).to_have_text(["42"])
    page.goto(address(shop, "?search=nowhere"))
    expect(page.get_by_text("Nothing found here")).to_be_visible()


def test_a_search_that_makes_no_sense_is_explained(
    shop: Site, page: Page, watch: Watch
) -> None:
    watch.expect("422")
    page.goto(address(shop, f"?search={quoted(' '.join('abcdefghijklmnopqrst'))}"))

    expect(page.get_by_role("alert")).to_be_visible()


def test_new_events_appear_until_one_looks_at_one(shop: Site, page: Page) -> None:
    shop.publish("ticks", {"n": 1})
    page.goto(address(shop, topic="ticks"))
    expect(offsets(page)).to_have_text(["0"])

    shop.publish("ticks", {"n": 2})
    expect(offsets(page)).to_have_text(["1", "0"])
    page.keyboard.press("j")
    expect(page.get_by_role("button", name="Paused")).to_be_visible()
    shop.publish("ticks", {"n": 3})

    expect(page.get_by_text("1 newer")).to_be_visible()
    expect(offsets(page)).to_have_text(["1", "0"])
    page.keyboard.press("Escape")
    expect(offsets(page)).to_have_text(["2", "1", "0"])


def test_an_event_is_shown_beside_the_list(shop: Site, page: Page) -> None:
    shop.publish("long", {"id": LONG, "deep": {"list": [1, {"x": None}]}})
    page.goto(address(shop, topic="long"))
    expect(offsets(page)).to_have_text(["0"])

    page.keyboard.press("j")
    event = page.get_by_role("complementary", name="Event 0")
    expect(event).to_contain_text(str(LONG))
    event.get_by_role("button", name="deep").click()
    expect(event).to_contain_text("1 field")
    event.get_by_role("tab", name="Raw").click()
    expect(event.locator("pre")).to_contain_text(f'"id": {LONG}')
    event.get_by_role("tab", name="Headers").click()
    expect(event).to_contain_text("This event has no headers")

    page.keyboard.press("e")
    page.wait_for_url("**/ui/events/long/0")


def test_text_and_bytes_are_shown_as_what_they_are(shop: Site, page: Page) -> None:
    shop.make_topic("raw")
    shop.ask("/topics/raw/events", {"text": "plain <b>words</b>"})
    shop.ask("/topics/raw/events", {"base64": "AAH/UGVuc3RvY2s="})
    page.goto(address(shop, topic="raw"))
    expect(offsets(page)).to_have_text(["1", "0"])

    page.keyboard.press("j")
    event = page.get_by_role("complementary")
    expect(event.locator("pre")).to_contain_text("00 01 ff 50 65 6e")
    page.keyboard.press("j")
    expect(event.locator("pre")).to_have_text("plain <b>words</b>")


def test_an_event_is_published_by_hand(shop: Site, page: Page) -> None:
    shop.make_topic("by hand")
    page.goto(address(shop, topic="by hand"))
    page.get_by_role("button", name="Publish one").click()
    payload = page.get_by_label("Payload")

    payload.fill('{"tea": ')
    expect(page.get_by_text("Not JSON yet")).to_be_visible()
    expect(page.get_by_role("button", name="Publish", exact=True)).to_be_disabled()
    payload.fill('{"tea": 9007199254740993}')
    page.get_by_label("Key", exact=True).fill("k1")
    page.get_by_label("Priority").fill("3")
    page.get_by_role("button", name="Add a header").click()
    page.get_by_label("Name of the header").fill("type")
    page.get_by_label("Value of the header").fill("tea.made")
    payload.press("Control+Enter")

    expect(page.get_by_text("Published at offset 0")).to_be_visible()
    event = shop.ask("/topics/by%20hand/events?whole=true")["events"][0]
    assert event["payload"] == {"tea": 9007199254740993}
    assert (event["key"], event["priority"]) == ("k1", 3)
    assert event["headers"] == {"type": "tea.made"}
    page.get_by_role("link", name="Show it").click()
    page.wait_for_url("**/ui/events/by%20hand/0")


def test_a_schema_is_written_tried_and_holds(
    shop: Site, page: Page, watch: Watch
) -> None:
    watch.expect("404|422|409")
    shop.make_topic("checked")
    page.goto(address(shop, "?tab=schema", "checked"))
    page.get_by_role("button", name="Write one").click()
    field = page.get_by_label("JSON Schema")
    field.fill(str(SCHEMA).replace("'", '"'))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("It can follow as the first version")).to_be_visible()
    page.get_by_role("button", name="Register").click()
    mocks = page.get_by_role("region", name="Made-up payloads")
    expect(mocks.get_by_role("button", name="Publish…")).to_have_count(3)

    mocks.get_by_role("button", name="Publish…").first.click()
    payload = page.get_by_label("Payload")
    expect(payload).to_have_value(re.compile('"n"'))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Fits version 1")).to_be_visible()
    payload.fill('{"n": "one"}')
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#payload-note")).to_contain_text("$.n")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.locator("#payload-note")).to_contain_text("integer")
    mock: list[Route] = []
    page.route("**/schema/mock?*", lambda route: mock.append(route))
    page.get_by_role("button", name="Fill with mock").click()
    publish = page.get_by_role("button", name="Publish", exact=True)
    expect(publish).to_be_disabled()  # or it would send what is about to be replaced
    expect(page.locator("#payload-note")).to_be_empty()
    mock.pop().continue_()
    publish.click()
    expect(page.get_by_text("Published at offset 0")).to_be_visible()


def test_a_version_that_breaks_readers_is_refused_with_the_reason(
    shop: Site, page: Page, watch: Watch
) -> None:
    watch.expect("409")
    shop.ask("/topics/strict/schema", {"schema": SCHEMA}, method="PUT")
    page.goto(address(shop, "?tab=schema", "strict"))
    page.get_by_role("button", name="New version").click()
    field = page.get_by_label("JSON Schema")
    field.fill('{"type": "object", "properties": {"n": {"type": "boolean"}}}')

    page.get_by_role("button", name="Check").click()
    expect(page.locator("#topic-part")).to_contain_text("$.n")
    page.get_by_role("button", name="Register").click()

    expect(page.get_by_role("alert")).to_be_visible()
    assert shop.ask("/topics/strict/schema")["version"] == 1


def test_documentation_is_edited_in_place(shop: Site, page: Page) -> None:
    page.goto(address(shop, "?tab=docs"))
    page.get_by_role("button", name="Write it").click()
    field = page.get_by_label("Markdown")

    field.fill(
        "# Orders\n\n- one for **each** order\n\n<script>window.ran = 1</script>"
    )
    expect(page.get_by_role("heading", name="Orders", exact=True)).to_be_visible()
    field.press("Control+s")

    article = page.get_by_role("article")
    expect(article.get_by_role("listitem")).to_have_text("one for each order")
    expect(article).to_contain_text("by admin")
    assert page.evaluate("window.ran") is None
    page.keyboard.press("e")
    expect(field).to_be_focused()
    field.fill("# All orders")
    field.press("Escape")
    expect(article.get_by_role("heading")).to_have_text("Orders")


def test_comments_are_written_and_removed(shop: Site, page: Page) -> None:
    page.goto(address(shop, "?tab=comments"))
    expect(page.get_by_text("No comments yet")).to_be_visible()

    page.get_by_role("textbox", name="Comment").fill("who owns this?")
    page.get_by_role("textbox", name="Comment").press("Control+Enter")
    expect(page.get_by_role("article")).to_contain_text("who owns this?")
    expect(page.get_by_role("tab", name="Comments 1")).to_be_visible()
    page.get_by_role("button", name="Remove comment").click()

    expect(page.get_by_text("No comments yet")).to_be_visible()


def test_subscriptions_show_their_lag_and_are_moved(shop: Site, page: Page) -> None:
    path = f"/subscriptions/books/{quoted(TOPIC)}/pull"
    shop.ask(path, {"max": 5, "start": "earliest"})
    page.goto(address(shop, "?tab=subscriptions"))
    row = page.get_by_role("row").filter(has_text="books")
    expect(row).to_contain_text("250")

    row.get_by_role("button", name="Move…").click()
    dialog = page.get_by_role("dialog", name="Move books")
    dialog.get_by_label("Go on from").select_option("an offset")
    dialog.get_by_label("Offset", exact=True).fill("240")
    dialog.get_by_role("button", name="Move", exact=True).click()

    expect(row).to_contain_text("240")
    assert shop.ask(f"/subscriptions/books/{quoted(TOPIC)}")["lag"] == 10


def test_the_shape_of_a_topic_is_counted(shop: Site, page: Page) -> None:
    page.goto(address(shop, "?tab=shape"))

    types = page.get_by_role("region", name="Event types")
    expect(types.get_by_role("listitem").first).to_contain_text("50")
    keys = page.get_by_role("region", name="Keys")
    expect(keys.get_by_role("listitem")).to_have_count(7)
    types.get_by_role("link", name="order.changed").click()
    expect(offsets(page).first).to_have_text("248")


def test_a_topic_is_deleted_only_by_its_name(shop: Site, page: Page) -> None:
    shop.publish("old", {"n": 1})
    page.goto(address(shop, "?tab=shape", "old"))
    page.get_by_role("button", name="Delete this topic…").click()
    dialog = page.get_by_role("dialog", name="Delete this topic?")
    sure = dialog.get_by_role("button", name="Delete")
    dialog.get_by_role("textbox").fill("ol")
    expect(sure).to_be_disabled()

    dialog.get_by_role("textbox").fill("old")
    sure.click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    expect(page.get_by_role("link", name="old", exact=True)).to_have_count(0)


def test_an_unknown_topic_is_named(shop: Site, page: Page, watch: Watch) -> None:
    watch.expect("404")
    page.goto(address(shop, topic="nowhere"))

    expect(page.get_by_role("alert")).to_contain_text("nowhere")
    page.get_by_role("link", name="All topics").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
