"""The web application of examples/outbox, run for real and killed in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.serving import PENSTOCK

pytest.importorskip("fastapi", reason="component: fastapi (not installed)")
pytest.importorskip("uvicorn", reason="component: uvicorn (not installed)")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 60.0
# Binds a free port itself, so that nobody can take it in between, and says which.
PROGRAM = """
import socket, sys, uvicorn
from pathlib import Path
from examples.outbox.app import app
sock = socket.create_server(("127.0.0.1", 0))
Path(sys.argv[1]).write_text(str(sock.getsockname()[1]))
server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
server.run(sockets=[sock])
"""


class Web:
    def __init__(self, directory: Path, process: subprocess.Popen[bytes]) -> None:
        self.mails = directory / "outbox-mails"
        self.process = process
        place = directory / "port"
        wait_for(lambda: place.exists() and place.read_text() != "")
        self.port = place.read_text()
        place.unlink()

    def order(self, key: str = "", **order: object) -> tuple[int, str]:
        """Place an order; the status and the id."""
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        url = f"http://127.0.0.1:{self.port}/orders"
        request = Request(url, json.dumps(order).encode(), headers)
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                return answer.status, json.load(answer)["id"]
        except HTTPError as error:
            with error:
                return error.code, ""

    def mail(self, id_: str) -> str:
        place = self.mails / f"{id_}.txt"
        wait_for(lambda: place.exists() and place.read_text() != "")
        return place.read_text()


def test_an_order_is_stored_when_it_is_answered_and_its_mail_is_sent(
    tmp_path: Path,
) -> None:
    with web(tmp_path) as site:
        status, id_ = site.order(customer="Ann", item="tea")
        again = [site.order("7", customer="Bob", item="milk", count=2) for _ in "ab"]
        refused = site.order(customer="Cid", item="tea", count=0)

        assert status == 201
        assert site.mail(id_) == "Dear Ann, 1 x tea will come.\n"
        assert again[0] == again[1]
        assert site.mail(again[0][1]) == "Dear Bob, 2 x milk will come.\n"
        assert refused == (422, "")
    assert len(list(site.mails.iterdir())) == 2


def test_mails_that_cannot_be_sent_are_sent_after_a_crash_and_a_fix(
    tmp_path: Path,
) -> None:
    with web(tmp_path) as site:
        site.mails.write_text("a file stands where the folder should be")
        ids = [site.order(customer="Ann", item=f"tea {number}")[1] for number in "12"]
        # The last of five tries is over: it is a dead letter, of a running program.
        wait_for(lambda: len(letters(tmp_path)) == 2)
        ids.append(site.order(customer="Ann", item="tea 3")[1])
        site.process.kill()
        site.process.wait()
    site.mails.unlink()

    with web(tmp_path) as site:
        republish = ["dead-letters", "republish", "--all", "--subscriber", "mail"]
        command(tmp_path, *republish)
        texts = [site.mail(id_) for id_ in ids]

        assert texts == [f"Dear Ann, 1 x tea {number} will come.\n" for number in "123"]
        wait_for(lambda: letters(tmp_path) == [])


@contextmanager
def web(directory: Path) -> Iterator[Web]:
    data = str(directory / "outbox")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OUTBOX_DATA": data}
    arguments = [sys.executable, "-c", PROGRAM, str(directory / "port")]
    with subprocess.Popen(arguments, env=environment) as process:
        try:
            yield Web(directory, process)
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)


def letters(directory: Path) -> list[object]:
    found = json.loads(command(directory, "dead-letters", "list", "--json"))
    assert isinstance(found, list)
    return found


def command(directory: Path, *arguments: str) -> bytes:
    data = ["--data", str(directory / "outbox")]
    done = subprocess.run(
        [*PENSTOCK, *arguments, *data], capture_output=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for(ready: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not ready():
        assert time.monotonic() < deadline_s, "it never came"
        time.sleep(0.01)
