"""The commands that talk to a running server, as a person meets them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import connect
from penstock.server.users_file import set_password
from tests.command import command, lines, penstock
from tests.serving import PENSTOCK, Serving, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server for all tests here; each has topics of its own."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


def test_events_go_from_one_command_to_another(server: Serving) -> None:
    published = lines(server, "publish", "flow", input=b"one\ntwo\nthree\n")

    got = lines(
        server, "subscribe", "flow", "--as", "a", "--from", "earliest", "--count", "3"
    )

    assert published == ["published 3 events to flow, last offset 2"]
    assert got == ["one", "two", "three"]
    (row,) = json.loads(lines(server, "subscriptions", "--topic", "flow", "--json")[0])
    assert (row["subscriber"], row["position"], row["lag"]) == ("a", 3, 0)


def test_a_subscriber_prints_events_as_they_come_until_ctrl_c(server: Serving) -> None:
    lines(server, "topics", "create", "live")
    command = [*PENSTOCK, "subscribe", "live", "--as", "b", "--data", str(server.data)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with connect(server.data) as client:
            while not subscribers(client.ask("topics.show", name="live")):
                pass  # each question takes a while: until it is there
            for payload in (b"one", b"two"):
                client.publish("live", payload)
                assert process.stdout.readline() == payload + b"\n"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)

    assert (process.returncode, rest, errors) == (0, b"", b"")
    (row,) = json.loads(
        lines(server, "subscriptions", "--subscriber", "b", "--json")[0]
    )
    assert row["lag"] == 0


def subscribers(topic: object) -> list[object]:
    assert isinstance(topic, dict)
    return list(topic["readers"])


def test_a_publisher_at_the_end_of_a_pipe_does_not_wait_for_more(
    server: Serving,
) -> None:
    command = [*PENSTOCK, "publish", "pipe", "--json", "--data", str(server.data)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for offset in range(3):
            process.stdin.write(b"line\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["offset"] == offset
        process.stdin.close()
        assert process.wait(60) == 0


def test_the_line_protocol_and_the_commands_see_the_same(server: Serving) -> None:
    address = ("127.0.0.1", server.ports["line"])
    with socket.create_connection(address) as sock, sock.makefile("rb") as answers:
        answers.readline()
        sock.sendall(b'confirm on\npub shared {"id":"7","msg":"hi","priority":3}\n')
        assert answers.readline() == b"confirm on\r\n"
        assert answers.readline() == b"published shared 7 0\r\n"
        sock.sendall(b'as walter\nsub shared\npub shared {"id":"8","msg":[1]}\n')
        for _ in range(3):
            answers.readline()

        (view,) = lines(server, "logs", "shared", "--json")

    events = json.loads(view)["walter"]
    assert [(one["id"], one["priority"], one["msg"]) for one in events] == [
        ("8", 0, [1])
    ]
    got = lines(
        server, *["subscribe", "shared", "--from", "0", "--count", "1", "--json"]
    )
    assert json.loads(got[0])["payload"] == "hi"


def test_a_dead_letter_is_sent_again_to_the_one_that_failed(server: Serving) -> None:
    lines(server, "publish", "letters", "event")
    with connect(server.data) as client:
        subscription = client.subscribe("letters", "me", start="earliest", tries=1)
        delivery = subscription.next(20.0)
        assert delivery is not None
        subscription.nack(delivery, "broken")
        subscription.close()
    only = ["--subscriber", "me", "--topic", "letters"]

    (letter,) = json.loads(lines(server, "dead-letters", "list", *only, "--json")[0])
    done = lines(server, "dead-letters", "republish", str(letter["number"]))

    assert letter["reason"] == "broken"
    assert done == [f"dead letter {letter['number']}: republished"]
    assert lines(server, "dead-letters", "list", *only) == ["no dead letters"]
    assert lines(server, "subscribe", "letters", "--as", "me", "--count", "1") == [
        "event"
    ]


def test_a_topic_is_deleted_under_a_publisher(server: Serving) -> None:
    lines(server, "publish", "old", "event")

    refused = command(server, "topics", "delete", "old")
    deleted = lines(server, "topics", "delete", "old", "--yes")

    assert refused.returncode == 2
    assert deleted == ["deleted topic old with 1 event"]
    assert lines(server, "publish", "old", "new") == [
        "published 1 event to old, last offset 0"
    ]


def test_a_server_is_reached_by_its_port_as_well(server: Serving) -> None:
    address = f"127.0.0.1:{server.ports['native']}"

    lines(server, "publish", "port", "event")

    result = penstock("topics", "show", "port", "--server", address, "--json")
    assert json.loads(result.stdout)["events"] == 1


def test_what_was_confirmed_outlives_a_crash(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        lines(server, "publish", "t", input=b"one\ntwo\nthree\n")
        options = ["--as", "me", "--from", "earliest"]
        lines(server, "subscribe", "t", *options, "--count", "1")

        server.kill()
        down = command(server, "publish", "t", "four")
        asked = command(server, "topics", "show", "t", "--json")
        server.start()

        assert down.returncode == 2
        assert b"\nerror: no server for data directory " in down.stderr, "after a wait"
        assert json.loads(asked.stdout)["end_offset"] == 3
        assert b"working on its files" in asked.stderr
        assert lines(server, "subscribe", "t", *options, "--count", "2") == [
            "two",
            "three",
        ]
        assert server.stop() == 0


def test_with_users_the_port_asks_for_a_login_and_the_socket_does_not(
    tmp_path: Path,
) -> None:
    users, password = tmp_path / "users", tmp_path / "password"
    set_password(users, "anna", "a long secret")
    password.write_text("a long secret\n")
    with serving(tmp_path, "--users-file", str(users)) as server:
        port = ["--server", f"127.0.0.1:{server.ports['native']}"]

        anonymous = penstock("topics", *port)
        anna = penstock(
            *("topics", *port, "--user", "anna", "--password-file", str(password))
        )
        local = command(server, "topics")

    assert anonymous.returncode == 2
    assert b"error: login refused: this server asks for a user" in anonymous.stderr
    assert (anna.returncode, local.returncode) == (0, 0)
