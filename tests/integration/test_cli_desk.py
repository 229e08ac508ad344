"""The dead-letter desk as a person meets it: after a bug, with and without a server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.client import connect
from penstock.server.users_file import set_password, set_rules
from tests.command import lines, penstock
from tests.serving import PENSTOCK, Serving, serving

EVENTS = 40
APP = """
import json
import sys

import penstock
from penstock.embedded import Domain, Event

billing = Domain("billing")


@billing.on("orders", tries=1, concurrency=4)
def charge(event: Event[bytes]) -> None:
    order = json.loads(event.payload)
    {charge}


if __name__ == "__main__":
    with penstock.open(sys.argv[1]) as broker:
        broker.start(billing)
        for number in range(int(sys.argv[2])):
            broker.publish("orders", json.dumps({{"total": str(number)}}).encode())
        broker.wait_until_settled()
"""
BROKEN = 'order["total"] + 1'
MENDED = 'int(order["total"]) + 1'


def bury(server: Serving, topic: str, count: int = EVENTS) -> None:
    with connect(server.data) as client:
        client.publish(topic, [b'{"n":%d}' % number for number in range(count)])
        with client.subscribe(topic, "billing", start="earliest", tries=1) as billing:
            for number in range(count):
                delivery = billing.next(20.0)
                assert delivery is not None
                kind = "KeyError" if number % 2 else "ValueError"
                billing.nack(delivery, f"no {number}", kind=kind, traceback="Traceback")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server for all tests here; each has topics of its own."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


def test_a_group_is_found_and_sent_again(server: Serving) -> None:
    bury(server, "grouped")

    groups = json.loads(
        lines(server, "dead-letters", "groups", "--topic", "grouped", "--json")[0]
    )
    counts = {one["kind"]: one["count"] for one in groups}
    example = str(groups[0]["example"])
    sent = lines(server, "dead-letters", "republish", "--like", example)
    left = json.loads(
        lines(server, "dead-letters", "groups", "--topic", "grouped", "--json")[0]
    )

    assert counts == {"ValueError": EVENTS // 2, "KeyError": EVENTS // 2}
    assert sent == [f"{EVENTS // 2} of {EVENTS // 2} republished"]
    assert [one["kind"] for one in left] == [groups[1]["kind"]]


def test_ctrl_c_stops_cleanly_and_the_next_run_goes_on(server: Serving) -> None:
    bury(server, "slow")
    which = ["--all", "--topic", "slow"]
    command = [*PENSTOCK, "dead-letters", "republish", *which, "--rate", "4"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PENSTOCK_DATA": str(server.data)},
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline().decode()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert first.endswith(f" of {EVENTS} republished\n")
    assert process.returncode == 130
    assert b"stopped: " in said
    assert said.endswith(b"run it again to go on\n")
    (rest,) = lines(server, "dead-letters", "republish", *which)
    done = int(said.decode().split()[1])
    # The one that was asked for when it was stopped may have been sent as well.
    assert int(rest.split()[0]) in (EVENTS - done, EVENTS - done - 1)


def test_an_edited_event_reaches_its_subscriber_only(server: Serving) -> None:
    bury(server, "edited", 1)
    (letter,) = json.loads(
        lines(server, "dead-letters", "list", "--topic", "edited", "--json")[0]
    )
    number = str(letter["number"])

    done = lines(
        *(server, "dead-letters", "republish", number, "--edit", "-"),
        input=b'{"n": "one"}',
    )
    got = lines(server, "subscribe", "edited", "--as", "billing", "--count", "1")
    other = lines(server, "subscribe", "edited", "--from", "earliest", "--count", "1")

    assert done == [f"dead letter {number}: edited and republished"]
    assert (got, other) == (['{"n": "one"}'], ['{"n":0}'])
    assert any(
        line.startswith("edited by ")
        for line in lines(server, "dead-letters", "show", number)
    )


def test_the_error_log_is_searched(server: Serving) -> None:
    bury(server, "logged", 4)

    found = json.loads(
        lines(
            *(server, "errors", "list", "--topic", "logged"),
            *("--error", "KeyError", "--oldest-first", "--json"),
        )[0]
    )
    shown = lines(server, "errors", "show", str(found[0]["number"]))
    groups = lines(server, "errors", "groups", "--topic", "logged")

    assert [one["offset"] for one in found] == [1, 3]
    assert shown[-1] == "  Traceback"
    assert len(groups) == 3


def test_the_user_who_has_logged_in_is_in_the_audit(tmp_path: Path) -> None:
    users, password = tmp_path / "users", tmp_path / "password"
    set_password(users, "anna", "secret")
    set_rules(users, "anna", None, admin=True)
    password.write_text("secret\n")
    login = ["--user", "anna", "--password-file", str(password)]
    with serving(tmp_path, "--users-file", str(users)) as server:
        with connect(server.data, user="anna", password="secret") as client:
            client.publish("t", [b"x", b"y", b"z"])
            with client.subscribe("t", "me", start=0, tries=1) as me:
                for _ in range(3):
                    delivery = me.next(20.0)
                    assert delivery is not None
                    me.nack(delivery, "no")

        drop = ["dead-letters", "drop", "--because", "old", "--yes", *login]
        lines(server, *drop, "0")
        port = f"127.0.0.1:{server.ports['native']}"
        lines(server, *drop, "1", "--server", port)
        with connect(port, user="anna", password="secret") as client:
            client.ask("dead-letters.republish", numbers=[2], by="bert")
        (line,) = lines(server, "dead-letters", "audit", "--json", *login)

    # Two drops by one person for one reason are one row.
    entries = [(one["by"], one["numbers"]) for one in json.loads(line)]
    assert entries == [("anna", [2]), ("anna", [0, 1])]


def test_from_a_bug_to_a_test_to_an_empty_desk(tmp_path: Path) -> None:
    """An embedded application, its desk without a process, and a test of its bug."""
    data, app = tmp_path / "data", tmp_path / "app.py"
    app.write_text(APP.format(charge=BROKEN))
    in_folder: dict[str, Any] = {
        "cwd": tmp_path,
        "capture_output": True,
        "text": True,
        "timeout": 60,
        "env": {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }

    def desk(*arguments: str) -> str:
        there = {"PENSTOCK_DATA": str(data)}
        result = penstock(*arguments, cwd=tmp_path, env=there)
        assert result.returncode == 0, result.stderr
        return result.stdout.decode()

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], **in_folder)

    first = python("app.py", str(data), "3")
    assert first.returncode == 0, first.stderr
    (group,) = json.loads(desk("dead-letters", "groups", "--json"))
    assert (group["count"], group["kind"]) == (3, "TypeError")
    desk("dead-letters", "export-test", "0", "--out", "test_bug.py")

    failing = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_bug.py")
    app.write_text(APP.format(charge=MENDED))
    passing = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_bug.py")

    assert "TypeError" in failing.stdout
    assert (failing.returncode, passing.returncode) == (1, 0), passing.stdout
    sent = desk("dead-letters", "republish", "--all", "--subscriber", "billing")
    assert sent == "3 of 3 republished\n"
    assert python("app.py", str(data), "0").returncode == 0
    assert desk("dead-letters") == "no dead letters\n"
    (row,) = json.loads(desk("subscriptions", "--json"))
    assert (row["subscriber"], row["lag"]) == ("billing", 0)
