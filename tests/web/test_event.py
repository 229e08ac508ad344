"""One event: everything about it, its deliveries, and its chain as a graph."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Watch
from tests.web.site import Site, eventually

MANY = 8


def published(site: Site, topic: str, payload: object, **more: object) -> str:
    """Publish one event; its id."""
    site.make_topic(topic)
    done: dict[str, Any] = site.ask(
        f"/topics/{topic}/events", {"payload": payload, **more}
    )
    id_: str = done["id"]
    return id_


@pytest.fixture(scope="module")
def chain(site: Site) -> Site:
    """An order, what it caused, what that caused, and many parcels."""
    order = published(
        site, "orders", {"item": "tea"}, key="ada", headers={"type": "order.placed"}
    )
    payment = published(site, "payments", {"cents": 450}, parent=order)
    published(site, "mails", {"text": "thank you"}, parent=payment)
    for number in range(MANY):
        published(site, "parcels", {"n": number}, parent=order)
    published(site, "orders", {"item": "milk"})
    site.fail("billing", "orders", "ValueError: amount is no number", many=1)
    eventually(lambda: chain_length(site, order) == MANY + 3, "the chain is indexed")
    return site


def chain_length(site: Site, id_: str) -> int:
    return len(site.ask(f"/events/{id_}/chain")["events"])


def test_everything_about_an_event_is_there(chain: Site, page: Page) -> None:
    page.goto(f"{chain.url}/ui/events/orders/0")

    facts = page.get_by_role("region", name="Event", exact=True)
    id_ = chain.ask("/topics/orders/events/0")["event"]["id"]
    expect(facts).to_contain_text(id_)
    expect(facts).to_contain_text("15 bytes")
    expect(facts.get_by_role("link", name="ada")).to_be_visible()
    payload = page.get_by_role("region", name="Payload")
    expect(payload).to_contain_text('item: "tea"')
    payload.get_by_role("tab", name="Headers").click()
    expect(payload).to_contain_text("order.placed")
    facts.get_by_role("link", name="ada").click()
    page.wait_for_url("**/ui/topics/orders?key=ada")


def test_what_became_of_it_in_every_subscription(chain: Site, page: Page) -> None:
    page.goto(f"{chain.url}/ui/events/orders/0")

    delivery = page.get_by_role("region", name="Deliveries").get_by_role("listitem")
    expect(delivery).to_contain_text("billing")
    expect(delivery).to_contain_text("dead letter")
    expect(delivery).to_contain_text("amount is no number")
    delivery.locator("summary").click()
    delivery.get_by_role("link", name="letter").click()
    page.wait_for_url("**/ui/dead-letters?letter=*")


def test_a_delivery_under_way_is_followed(chain: Site, page: Page) -> None:
    published(chain, "jobs", {"n": 1})
    path = "/subscriptions/worker/jobs/pull"
    chain.ask(path, {"max": 1, "start": "earliest", "wait_s": 5})
    page.goto(f"{chain.url}/ui/events/jobs/0")
    delivery = page.get_by_role("region", name="Deliveries").get_by_role("listitem")
    expect(delivery).to_contain_text("in flight")

    chain.ask(path, {"max": 1, "wait_s": 0, "ack": [0]})

    expect(delivery).to_contain_text("settled")


def test_the_chain_is_a_graph_of_causes_and_effects(chain: Site, page: Page) -> None:
    page.goto(f"{chain.url}/ui/events/payments/0")

    graph = page.get_by_role("region", name="Graph of the chain")
    cause = graph.get_by_role("link", name="orders")
    asked = graph.get_by_role("link", name="payments")
    effect = graph.get_by_role("link", name="mails")
    expect(page.get_by_text("1 cause, 1 effect in 3 topics")).to_be_visible()
    tops = [one.bounding_box() for one in (cause, asked, effect)]
    heights = [box["y"] for box in tops if box is not None]
    assert heights == sorted(heights) and len(set(heights)) == 3
    expect(asked).to_have_attribute("aria-current", "true")

    cause.click()
    page.wait_for_url("**/ui/events/orders/0")
    expect(
        page.get_by_text(f"0 causes, {MANY + 2} effects in 4 topics")
    ).to_be_visible()


def test_many_alike_are_a_pile_until_they_are_wanted(chain: Site, page: Page) -> None:
    page.goto(f"{chain.url}/ui/events/orders/0")
    graph = page.get_by_role("region", name="Graph of the chain")
    pile = graph.get_by_role("button", name=f"parcels {MANY} events")
    expect(graph.get_by_role("link", name="parcels")).to_have_count(0)

    pile.click()

    expect(graph.get_by_role("link", name="parcels")).to_have_count(MANY)
    page.get_by_role("button", name="List").click()
    rows = page.get_by_role("region", name="Chain").get_by_role("listitem")
    expect(rows).to_have_count(MANY + 3)


def test_an_event_without_a_chain_says_so(chain: Site, page: Page) -> None:
    page.goto(f"{chain.url}/ui/events/orders/1")

    expect(page.get_by_text("It stands alone")).to_be_visible()


def test_neighbours_and_the_topic_are_a_key_away(chain: Site, page: Page) -> None:
    page.goto(f"{chain.url}/ui/events/orders/0")
    payload = page.get_by_role("region", name="Payload")
    expect(payload).to_contain_text("tea")

    page.keyboard.press("]")
    expect(payload).to_contain_text("milk")
    page.keyboard.press("]")
    expect(page.get_by_text("This is the newest event")).to_be_visible()
    page.keyboard.press("[")
    expect(payload).to_contain_text("tea")
    page.keyboard.press("u")
    page.wait_for_url("**/ui/topics/orders")


def test_an_event_is_published_again_from_what_it_was(chain: Site, page: Page) -> None:
    page.goto(f"{chain.url}/ui/events/orders/0")
    page.get_by_role("button", name="Publish again…").click()

    expect(page.get_by_label("Key", exact=True)).to_have_value("ada")
    expect(page.get_by_label("Name of the header")).to_have_value("type")
    page.get_by_label("Payload").fill('{"item": "tea", "again": true}')
    page.get_by_role("button", name="Publish", exact=True).click()

    expect(page.get_by_text("Published at offset")).to_be_visible()
    event = chain.ask("/topics/orders/events?tail=1")["events"][0]
    assert event["payload"] == {"item": "tea", "again": True}
    assert event["headers"] == {"type": "order.placed"}


def test_an_event_that_is_not_there_leads_on(
    chain: Site, page: Page, watch: Watch
) -> None:
    watch.expect("404")
    page.goto(f"{chain.url}/ui/events/mails/999")

    expect(page.get_by_role("alert")).to_contain_text("999")
    page.get_by_role("link", name="Show what is there").click()
    page.wait_for_url("**/ui/topics/mails?offset=999")
