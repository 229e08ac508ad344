"""The question box: asking, what comes of it, and what is remembered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from penstock.http.key_file import KeyFile, TokenRequest
from tests.serving import serving
from tests.web.conftest import Watch, log_in
from tests.web.site import Site, quoted

SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}}
# More than a browser's number can hold.
LONG = "9007199254740993"


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    site.publish("orders", *({"item": item} for item in ("tea", "milk", "tea")))
    site.publish("odd.ones", "no object", {"item": "ham"})
    schema = {"schema": SCHEMA}
    site.ask("/topics/odd.ones/schema", schema, method="PUT")
    return site


def box(page: Page, site: Site, query: str = "") -> Locator:
    page.goto(f"{site.url}/ui/sql" + (f"?query={quoted(query)}" if query else ""))
    field = page.get_by_role("textbox", name="Question in SQL")
    expect(field).to_be_visible()
    return field


def ask(page: Page, site: Site, query: str) -> Locator:
    field = box(page, site)
    field.fill(query)
    field.press("Control+Enter")
    return page.get_by_role("region", name="Answer")


def cells(answer: Locator) -> list[str]:
    return answer.locator("tbody td").all_inner_texts()


def test_a_question_is_answered_by_a_table_with_types(filled: Site, page: Page) -> None:
    answer = ask(
        page,
        filled,
        "SELECT value->>'$.item' AS item, count(*) AS n FROM orders "
        "GROUP BY item ORDER BY item",
    )

    expect(answer.get_by_role("status")).to_contain_text("2 rows in")
    headings = answer.get_by_role("columnheader")
    expect(headings).to_have_text(["itemVARCHAR", "nBIGINT"])
    assert cells(answer) == ["milk", "1", "tea", "2"]


def test_values_are_shown_as_they_are(filled: Site, page: Page) -> None:
    answer = ask(
        page,
        filled,
        f"SELECT NULL, {LONG}, {{'a': [1]}}, '<b>bold</b>', '', true, 1.5",
    )

    expect(answer).to_contain_text("1 row")
    assert cells(answer) == [
        *("NULL", LONG, '{"a":[1]}', "<b>bold</b>", "", "true", "1.5")
    ]


def test_an_answer_that_is_cut_says_so_in_plain_words(filled: Site, page: Page) -> None:
    answer = ask(page, filled, "SELECT * FROM range(1001)")

    expect(answer).to_contain_text(
        "These are the first 1\u202f000 rows; there are more"
    )
    expect(answer).to_contain_text("http.sql_rows")


def test_payloads_that_do_not_fit_are_told_of(filled: Site, page: Page) -> None:
    answer = ask(page, filled, 'SELECT item FROM "odd.ones" ORDER BY offset')

    expect(answer).to_contain_text("1 payloads of odd.ones do not fit its schema")
    assert cells(answer) == ["NULL", "ham"]


def test_what_is_wrong_is_said_with_a_way_on(
    filled: Site, page: Page, watch: Watch
) -> None:
    watch.expect("422")
    ask(page, filled, "SELECT * FROM ordres")

    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("there is no topic ordres")
    expect(problem).to_contain_text("did you mean orders")


def test_nothing_found_is_no_mistake(filled: Site, page: Page) -> None:
    answer = ask(page, filled, "SELECT * FROM orders WHERE offset > 100")

    expect(answer).to_contain_text("No rows")


def test_a_link_fills_the_box_and_asks_nothing(filled: Site, page: Page) -> None:
    asked: list[str] = []

    def seen(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_()

    page.route(re.compile(r"/v1/sql\?"), seen)

    field = box(page, filled, "SELECT 42 AS answer")

    expect(field).to_have_value("SELECT 42 AS answer")
    expect(page.get_by_role("button", name="Ask")).to_be_enabled()
    assert asked == []
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("42")
    assert len(asked) == 1


def test_the_question_is_in_the_address_and_back_brings_the_one_before(
    filled: Site, page: Page
) -> None:
    answer = ask(page, filled, "SELECT 1 AS one")
    expect(answer).to_contain_text("one")
    field = page.get_by_role("textbox", name="Question in SQL")
    field.fill("SELECT 2 AS two")
    field.press("Control+Enter")
    expect(answer).to_contain_text("two")

    expect(page).to_have_url(re.compile(r"query=SELECT\+2\+AS\+two"))
    page.go_back()
    expect(field).to_have_value("SELECT 1 AS one")


def test_topics_and_columns_are_picked_into_the_question(
    filled: Site, page: Page
) -> None:
    field = box(page, filled)
    field.fill("SELECT * FROM")
    topics = page.get_by_role("region", name="Topics")
    topics.get_by_text("odd.ones", exact=True).click()
    topics.get_by_role("button", name="Put it into the question").click()

    expect(field).to_have_value('SELECT * FROM "odd.ones"')
    expect(topics.get_by_role("button", name="item", exact=True)).to_be_visible()
    expect(topics).to_contain_text("VARCHAR")
    expect(field).to_be_focused()


def test_what_was_asked_is_remembered_and_can_be_forgotten(
    filled: Site, page: Page
) -> None:
    expect(ask(page, filled, "SELECT 'first'")).to_be_visible()
    expect(ask(page, filled, "SELECT 'second'")).to_be_visible()
    field = box(page, filled)
    page.get_by_text("Asked before").click()
    before = page.get_by_role("form", name="Question").get_by_role("listitem")

    expect(before).to_have_text(["SELECT 'second'", "SELECT 'first'"])
    before.first.get_by_role("button").click()
    expect(field).to_have_value("SELECT 'second'")
    page.get_by_role("button", name="Forget them").click()
    expect(before).to_have_count(0)
    box(page, filled)
    expect(page.get_by_text("Asked before")).to_have_count(0)


def test_an_answer_is_downloaded_as_csv(filled: Site, page: Page) -> None:
    query = "SELECT 'a,\"b\"' AS x, NULL AS y, 3 AS z"
    answer = ask(page, filled, query)
    with page.expect_download() as download:
        answer.get_by_role("button", name="Download CSV").click()

    text = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == "answer.csv"
    assert text == b'x,y,z\r\n"a,""b""",,3\r\n'


def test_a_question_can_be_stopped(filled: Site, page: Page) -> None:
    ask(page, filled, "SELECT count(*) FROM range(1000000000000000)")

    page.get_by_role("button", name="Stop").click()

    expect(page.get_by_role("button", name="Ask")).to_be_enabled()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_who_may_read_some_topics_asks_about_those(
    filled: Site, context: BrowserContext, watch: Watch
) -> None:
    watch.expect("422")
    wanted = TokenRequest(name="some", scope="topics", subscribe=("orders",))
    token = KeyFile(filled.server.data).add(wanted, 0)
    log_in(context, filled, token)
    page = context.new_page()

    found = ask(page, filled, "SELECT count(*) FROM orders")

    expect(found).to_contain_text("3")
    topics = page.get_by_role("region", name="Topics")
    expect(topics.get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("alert")).to_have_count(0)
    ask(page, filled, 'SELECT * FROM "odd.ones"')
    expect(page.get_by_role("alert")).to_contain_text("there is no topic odd.ones")


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that answers no questions."""
    folder = tmp_path_factory.mktemp("silent")
    config = folder / "penstock.toml"
    config.write_text("[http]\nsql_questions = 0\n")
    with serving(folder, "--config", str(config)) as server:
        yield Site(server)


def test_a_server_that_answers_none_says_so(
    silent: Site, context: BrowserContext, watch: Watch
) -> None:
    watch.expect("429")
    log_in(context, silent)
    page = context.new_page()

    page.goto(f"{silent.url}/ui/sql")

    expect(page.get_by_text("This server answers no questions in SQL")).to_be_visible()


def test_a_server_without_the_extra_says_how_to_install_it(
    filled: Site, page: Page, watch: Watch
) -> None:
    watch.expect("501")
    told = {
        "status": 501,
        "detail": "SQL needs duckdb, which is not installed: "
        "pip install 'penstock[sql]'",
        "error": "MissingExtra",
    }
    page.route("**/v1/sql/topics", lambda route: route.fulfill(status=501, json=told))

    page.goto(f"{filled.url}/ui/sql")

    expect(page.get_by_role("alert")).to_contain_text("pip install 'penstock[sql]'")


def test_an_answer_fits_into_400_pixels(filled: Site, page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    answer = ask(page, filled, "SELECT *, repeat('long ', 200) FROM orders")
    expect(answer).to_contain_text("3 rows")

    assert page.evaluate("document.documentElement.scrollWidth") <= 400
