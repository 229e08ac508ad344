"""The Pipeline page: stages as `penstock up` tells them, statistics as charts."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.serving import serving
from tests.web.conftest import Chromium
from tests.web.site import Site


@pytest.fixture(scope="module")
def status(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up") / "status.json"


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, status: Path, chromium: Chromium
) -> Iterator[Site]:
    """A broker that is told where `penstock up` writes its stages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_HTTP_PIPELINE_STATUS", str(status))
        with serving(tmp_path_factory.mktemp("site")) as server:
            yield Site(server)


def test_stages_are_drawn_in_the_order_an_event_passes_them(
    site: Site, page: Page, status: Path
) -> None:
    page.goto(f"{site.url}/ui/pipeline")
    expect(page.get_by_text("The pipeline does not run here")).to_be_visible()
    expect(page.get_by_text("penstock up", exact=True)).to_be_visible()

    _tell(status, spark={"lag": 16406, "restarts": 2}, source={"rate": 404.0})

    page.goto(f"{site.url}/ui/pipeline")

    stages = page.get_by_role("list", name="Stages").get_by_role("listitem")
    names = ("source", "broker", "spark", "subscribers")
    expect(stages).to_have_text([re.compile(name) for name in names])
    expect(stages.nth(0)).to_contain_text("404")
    expect(stages.nth(2)).to_contain_text("16.4")
    expect(stages.nth(2)).to_contain_text("restarts2")


def test_statistics_are_charts_and_ranks(site: Site, page: Page) -> None:
    now_ms = int(time.time() * 1000)
    for topic, count in (("tweets_stats", "processed"), ("logger_stats", "crashes")):
        windows = [
            {
                "kind": "tweets",
                "window_start_ms": now_ms - (20 - n) * 5000,
                "window_end_ms": now_ms - (19 - n) * 5000,
                "p75": 10 + n,
                "p85": 12 + n,
                "p95": 20 + n,
                count: 100,
            }
            for n in range(20)
        ]
        site.publish(topic, *windows)
    site.publish(
        "hashtag_stats", *({"tag": f"tag{n}", "count": n * n} for n in range(30))
    )
    site.publish(
        "users_engagements",
        *({"op": "insert", "key": f"{n}", "after": _user(n)} for n in range(30)),
    )
    site.publish(
        "tweets",
        *(
            {
                "op": "insert",
                "key": f"{n}",
                "after": {"sentiments_score": 0.5, "vader_score": 0.25},
            }
            for n in range(60)
        ),
    )

    page.goto(f"{site.url}/ui/pipeline")

    tweets = page.get_by_role("region", name="Tweets written")
    expect(tweets).to_contain_text("2 000 tweets in 20 windows", use_inner_text=True)
    expect(tweets.locator("canvas")).to_be_visible()
    tags = page.get_by_role("list", name="Hashtags").get_by_role("listitem")
    expect(tags.first).to_contain_text("#tag29")
    users = page.get_by_role("list", name="Users").get_by_role("listitem")
    expect(users.first).to_contain_text("@user29")
    page.get_by_role("tab", name="Mean").click()
    expect(users.first).to_contain_text("@user0")
    sentiment = page.get_by_role("region", name="Sentiment")
    expect(sentiment).to_contain_text("0.25")

    # What comes is drawn without loading anew.
    site.publish("hashtag_stats", {"tag": "news", "count": 5000})
    expect(tags.first).to_contain_text("#news")


def _user(number: int) -> dict[str, object]:
    return {
        "id_str": f"{number}",
        "screen_name": f"user{number}",
        "count": number,
        "sum": number * 2.0,
        "avg": 30.0 - number,
        "last_score": 0.1,
    }


def _tell(status: Path, **more: dict[str, object]) -> None:
    names = ("broker", "source", "spark", "subscriber tweets")
    plain = {"state": "ready", "events": 100, "rate": 1.0, "lag": 0, "restarts": 0}
    rows = [
        {"name": name, **plain, "errors": 0, "note": "", **more.get(name, {})}
        for name in names
    ]
    told = {"running": True, "stages": rows, "at_ms": int(time.time() * 1000)}
    status.write_text(json.dumps(told))
