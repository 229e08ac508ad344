"""The Subscribers page: who is connected, who lags, who stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from penstock.client import connect
from tests.interop.peers import Paho
from tests.serving import serving
from tests.web.conftest import Chromium
from tests.web.site import Site, eventually
from tests.wire_client import Wire


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, chromium: Chromium
) -> Iterator[Site]:
    """A broker that loses patience with a silent consumer soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_JSON_PUB_TRIES", "1")
        patch.setenv("PENSTOCK_JSON_PUB_INTERVAL_S", "0.2")
        with serving(tmp_path_factory.mktemp("site")) as server:
            yield Site(server)


def test_a_connected_subscriber_is_listed_with_gateway_and_lag(
    site: Site, page: Page
) -> None:
    site.make_topic("orders")
    with Wire(site.server.ports["line"]) as anna:
        anna.line()
        assert anna.ask("as anna") == "subscriber anna"
        anna.say("sub orders")
        eventually(lambda: site.ask("/subscriptions")["subscriptions"], "subscribed")
        site.publish("orders", {"n": 1}, {"n": 2}, {"n": 3})
        page.goto(f"{site.url}/ui/subscribers")

        row = page.get_by_role("row").filter(has_text="anna")

        expect(row).to_contain_text("connected")
        expect(row).to_contain_text("line")
        expect(row.get_by_role("cell").last).to_have_text("3")
    # It is gone, and its events wait.
    expect(row).to_contain_text("away")


def test_a_suspended_subscription_is_resumed_by_a_button(
    site: Site, page: Page
) -> None:
    site.make_topic("news")
    with Wire(site.server.ports["consumer"]) as bert:
        bert.say("log bert", '{"type":"SUB","topic":"news"}')
        assert bert.lines(3)[-1] == "OK"
        site.publish("news", {"n": 1})
        eventually(lambda: _state(site, "bert") == "suspended", "suspended")
        page.goto(f"{site.url}/ui/subscribers")
        box = page.get_by_role("region", name="Suspended")
        expect(box).to_contain_text("bert")

        box.get_by_role("button", name="Resume bert on news").click()

        expect(page.get_by_text("bert may go on with news")).to_be_visible()
        expect(box).to_be_hidden()
        bert.say('{"type":"SUB","topic":"news"}')
        said = bert.lines(3)
    assert sum('"type":"PUB"' in line for line in said) == 2, said


def test_a_query_of_spark_is_marked(site: Site, page: Page) -> None:
    site.publish("tweets", {"n": 1}, {"n": 2})
    with connect(site.server.data) as client:
        client.ask(
            "subscriptions.progress",
            subscriber="spark:counts",
            topic="tweets",
            offset=1,
        )

    page.goto(f"{site.url}/ui/subscribers")

    row = page.get_by_role("row").filter(has_text="spark:counts")
    expect(row.get_by_text("Spark", exact=True)).to_be_visible()
    expect(row.get_by_role("cell").last).to_have_text("1")


def test_clients_of_mqtt_and_shared_groups_are_called_so(
    site: Site, page: Page
) -> None:
    emil = Paho(site.server.ports["mqtt"], client_id="emil")
    emil.connect()
    try:
        emil.subscribe("posts", 1)
        emil.subscribe("$share/team/posts", 1)
        site.publish("posts", {"n": 1})
        page.goto(f"{site.url}/ui/subscribers")

        client = page.get_by_role("row").filter(has_text="mqtt client emil")
        group = page.get_by_role("row").filter(has_text="shared group team: posts")

        expect(client).to_contain_text("connected")
        expect(client).to_contain_text("mqtt")
        expect(group).to_contain_text("connected")
        page.goto(f"{site.url}/ui/subscribers?tab=connections")
        rows = page.get_by_role("table", name="Connections").get_by_role("row")
        expect(rows.filter(has_text="emil")).to_contain_text("mqtt")
    finally:
        emil.close()


def test_a_subscription_is_looked_into_moved_and_forgotten(
    site: Site, page: Page
) -> None:
    site.publish("letters", *({"n": n} for n in range(5)))
    site.ask("/subscriptions/carl/letters/pull", {"max": 1, "start": "latest"})
    page.goto(f"{site.url}/ui/subscribers?subscriber=carl")
    page.get_by_role("row").filter(has_text="carl").get_by_text("carl").click()
    detail = page.get_by_role("region", name="carl on letters")
    expect(detail).to_contain_text("stands at")

    detail.get_by_role("button", name="Move…").click()
    page.get_by_role("dialog").get_by_role("button", name="Move").click()
    eventually(lambda: _row(site, "carl")["position"] == 0, "moved")

    detail.get_by_role("button", name="Forget…").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("carl subscribes to nothing")).to_be_visible()


def test_connections_are_listed_by_gateway(site: Site, page: Page) -> None:
    with Wire(site.server.ports["line"]) as doris:
        doris.line()
        assert doris.ask("as doris") == "subscriber doris"
        page.goto(f"{site.url}/ui/subscribers?tab=connections")

        rows = page.get_by_role("table", name="Connections").get_by_role("row")

        expect(rows.filter(has_text="line")).to_have_count(1)


def _row(site: Site, subscriber: str) -> dict:
    page = site.ask(f"/subscriptions?subscriber={subscriber}")
    return page["subscriptions"][0]


def _state(site: Site, subscriber: str) -> str:
    return _row(site, subscriber)["state"]


def test_more_than_a_page_of_subscriptions_can_be_loaded(
    site: Site, page: Page
) -> None:
    site.make_topic("crowd")
    with connect(site.server.data) as client:
        for number in range(1001):
            client.ask(
                "subscriptions.progress",
                subscriber=f"one-{number:04d}",
                topic="crowd",
                offset=0,
            )
    page.goto(f"{site.url}/ui/subscribers")
    expect(page.get_by_text("1 000 subscriptions and more")).to_be_visible()

    page.get_by_role("button", name="more").click()

    field = page.get_by_role("searchbox", name="Filter subscriptions")
    field.fill("one-1000")
    expect(page.get_by_role("cell", name="one-1000")).to_be_visible()
    expect(page.get_by_role("button", name="more")).to_be_hidden()
