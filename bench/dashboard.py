"""The dashboard in Chromium: how soon the overview can be used, what a live page costs.

A broker with a thousand topics and ten thousand subscriptions. The overview counts as
usable when its rows are drawn and the frame after them is on the screen; every opening
has a cold cache, every reload a warm one. Then a topic gets five thousand events a
second by the line gateway, with no page, with that topic followed, and with the
overview, in turns: what a page costs the broker is the difference to no page. Chromium
is counted with all its processes, drawing included.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.http import serving
from bench.peers.adapter import Dialogue
from bench.peers.processes import Missing, Server, cpu_s, descendants
from bench.rounds import Row, Settings, scratch
from penstock.broker.broker import Broker
from penstock.log import Log
from penstock.model.policy import Policy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

NAME = "dashboard"
TOPICS, SUBSCRIBERS = 1000, 10
OPENINGS, PATIENCE_S = 10, 30.0
USABLE_MS = 1000
LIVE_EVENTS_S, STEPS_S = 5000, 100
SECONDS, QUICK_SECONDS = 20.0, 4.0
# Charts and tables are filled before anything is counted.
SETTLE_S = 3.0
BROWSER_CORES, BROKER_CORES = 1 / 3, 0.05
FOLLOWED = "topic-0500"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# Notes when rows were there, and the frame after them.
WATCH = """
new MutationObserver((_, observer) => {
  if (document.querySelectorAll("table tbody tr.data a").length < 10) return;
  observer.disconnect();
  const note = () => { window.usable_ms = performance.now() };
  requestAnimationFrame(() => setTimeout(note));
}).observe(document, { childList: true, subtree: true });
"""


def run(settings: Settings) -> list[Row]:
    try:
        with _browser() as browser, scratch(settings.directory) as folder:
            _fill(folder / "data", settings.scaled(TOPICS))
            with serving(folder) as (server, token):
                rows = [*_opening(settings, browser, server, token)]
                return rows + [*_living(settings, browser, server, token)]
    except Missing as reason:
        print(f"{NAME}: skipped, {reason}", flush=True)
        return []


@contextmanager
def _browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), ""
    )
    if not path:
        raise Missing("chromium is not installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Missing("playwright is not installed") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def _fill(folder: Path, topics: int) -> None:
    """Topics, each with some events and some subscriptions that are not connected."""
    folder.mkdir(parents=True)
    with Broker(partial(Log.open, folder)) as broker:
        for number in range(topics):
            name = f"topic-{number:04d}"
            broker.create_topic(name)
            for reader in range(SUBSCRIBERS):
                broker.subscribe(f"reader-{reader}", name, Policy(), "earliest")
            if number % 100 == 99:
                broker.log.commit()
        if not broker.log.has_topic(FOLLOWED):
            broker.create_topic(FOLLOWED)
        broker.log.commit()


# How soon


def _opening(
    settings: Settings, browser: Browser, server: Server, token: str
) -> Iterator[Row]:
    opened_ms, reloaded_ms, asked_ms = [], [], []
    for _ in range(settings.scaled(OPENINGS)):
        with _logged_in(browser, server, token) as context:
            page = context.new_page()
            page.add_init_script(WATCH)
            page.goto(f"{_address(server)}/ui/")
            opened_ms.append(_usable_ms(page))
            page.reload()
            reloaded_ms.append(_usable_ms(page))
        asked_ms.append(_answer_ms(server, token))
    case = f"{settings.scaled(TOPICS)} topics, {settings.scaled(TOPICS) * SUBSCRIBERS}"
    case += " subscriptions"
    rows = {
        "overview usable, opened": opened_ms,
        "overview usable, reloaded": reloaded_ms,
        "GET /v1/overview, all topics": asked_ms,
    }
    for name, times_ms in rows.items():
        seen = name.startswith("overview")
        yield Row(
            benchmark=NAME,
            case=case,
            contender=name,
            rate=f"median {statistics.median(times_ms):.0f} ms, "
            f"worst of {len(times_ms)} {max(times_ms):.0f} ms",
            target=f"under {USABLE_MS} ms" if seen else "",
            met=max(times_ms) < USABLE_MS if seen else None,
        )


def _usable_ms(page: Page) -> float:
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := page.evaluate("window.usable_ms")):
        assert time.monotonic() < deadline_s, "no rows"
        page.wait_for_timeout(20)
    return float(found)


def _answer_ms(server: Server, token: str) -> float:
    client = http.client.HTTPConnection("127.0.0.1", server.place.ports["http"])
    start_s = time.perf_counter()
    client.request(
        "GET",
        f"/v1/overview?limit={TOPICS}",
        headers={"Authorization": f"Bearer {token}"},
    )
    answer = client.getresponse()
    body = answer.read()
    took_ms = (time.perf_counter() - start_s) * 1000
    assert answer.status == 200, body
    client.close()
    return took_ms


# What it costs


def _living(
    settings: Settings, browser: Browser, server: Server, token: str
) -> Iterator[Row]:
    seconds = QUICK_SECONDS if settings.quick else SECONDS
    pages = {"": "", "topic followed": f"/ui/topics/{FOLLOWED}", "overview": "/ui/"}
    cores: dict[str, list[tuple[float, float]]] = {name: [] for name in pages}
    with _publishing(server):
        for _ in range(settings.rounds):
            for name, path in pages.items():
                with _logged_in(browser, server, token) as context:
                    look = partial(_cores, context, server, seconds)
                    cores[name].append(look(path and _address(server) + path))
    alone = statistics.median(broker for broker, _ in cores[""])
    case = f"{LIVE_EVENTS_S} events/s into one topic"
    yield Row(
        benchmark=NAME,
        case=case,
        contender="no page",
        rate=f"broker {alone:.1%} of a core",
    )
    for name in filter(None, pages):
        yield from _living_rows(case, name, cores[name], alone)


def _living_rows(
    case: str, name: str, taken: list[tuple[float, float]], alone: float
) -> Iterator[Row]:
    broker = statistics.median(one for one, _ in taken) - alone
    browser = statistics.median(one for _, one in taken)
    yield Row(
        benchmark=NAME,
        case=case,
        contender=f"{name}: Chromium",
        rate=f"{browser:.1%} of a core",
        target=f"under {BROWSER_CORES:.0%}",
        met=browser < BROWSER_CORES,
    )
    yield Row(
        benchmark=NAME,
        case=case,
        contender=f"{name}: broker, more than with no page",
        rate=f"{broker:.1%} of a core",
        target=f"under {BROKER_CORES:.0%}",
        met=broker < BROKER_CORES,
    )


def _cores(
    context: BrowserContext, server: Server, seconds: float, address: str
) -> tuple[float, float]:
    """Cores that broker and browser use while a page is open, or none."""
    page = context.new_page()
    if address:
        page.goto(address)
        page.locator("table tbody tr").first.wait_for()
    page.wait_for_timeout(SETTLE_S * 1000)
    broker_s, browser_s = cpu_s(server.place.pids), _browser_cpu_s()
    start_s = time.perf_counter()
    page.wait_for_timeout(seconds * 1000)
    took_s = time.perf_counter() - start_s
    broker_s = cpu_s(server.place.pids) - broker_s
    browser_s = _browser_cpu_s() - browser_s
    return broker_s / took_s, browser_s / took_s


def _browser_cpu_s() -> float:
    """CPU time of Chromium with all its processes, and of nothing else."""
    return sum(
        cpu_s([pid]) for pid in descendants(os.getpid()) if _is_root_of_browser(pid)
    )


def _is_root_of_browser(pid: int) -> bool:
    """The one that the others were started by; it was not told a type."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"chrom" in words[0] and not any(one.startswith(b"--type=") for one in words)


@contextmanager
def _publishing(server: Server) -> Iterator[None]:
    """Events into the followed topic at a steady rate, meanwhile."""
    over = threading.Event()
    failed: list[BaseException] = []
    thread = threading.Thread(target=_publish, args=(server, over, failed.append))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def _publish(
    server: Server, over: threading.Event, failed: Callable[[BaseException], None]
) -> None:
    try:
        line = Dialogue(server.place.ports["line"])
        line.ask(b"", b"message_broker\r\n")
        many, number, start_s = LIVE_EVENTS_S // STEPS_S, 0, time.monotonic()
        while not over.wait(
            max(0, start_s + number / LIVE_EVENTS_S - time.monotonic())
        ):
            line.sock.sendall(b"".join(map(_event, range(number, number + many))))
            number += many
        line.sock.close()
    except BaseException as error:  # told to whoever waits
        failed(error)


def _event(number: int) -> bytes:
    document = {
        "order": number,
        "city": "Graz",
        "cents": number % 977,
        "note": "." * 80,
    }
    return b"pub %b %b\r\n" % (
        FOLLOWED.encode(),
        json.dumps({"id": str(number), "msg": json.dumps(document)}).encode(),
    )


def _address(server: Server) -> str:
    return f"http://127.0.0.1:{server.place.ports['http']}"


@contextmanager
def _logged_in(
    browser: Browser, server: Server, token: str
) -> Iterator[BrowserContext]:
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        answer = context.request.post(
            f"{_address(server)}/v1/session", data={"token": token}
        )
        assert answer.ok, answer.text()
        yield context
