"""Questions in SQL over HTTP, with a real server and the processes that it starts."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from penstock.http.key_file import KeyFile, TokenRequest
from penstock.server.processes import children_of
from tests.http_client import Http, Reply
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

ONLY_HTTP = ("--no-line", "--no-json", "--no-maze", "--no-native")
ENDLESS = "SELECT count(*) FROM range(1000000000000000)"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
LIMITS = """
[http]
sql_questions = 1
sql_s = 60
sql_rows = 5
sql_answer_bytes = 4096
sql_memory_bytes = 67108864
"""
QUICK = 45.0


def until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + QUICK
    while not condition():
        assert time.monotonic() < deadline_s, "not within the time"
        time.sleep(0.005)


def served(folder: Path, config: str) -> Any:
    file = folder / "penstock.toml"
    file.write_text(config)
    return serving(folder, *ONLY_HTTP, "--config", str(file))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("box"), LIMITS) as server:
        client = Http(server)
        for name in ("orders", "secret"):
            client.ask("POST", "/v1/topics", {"name": name})
        client.ask("PUT", "/v1/topics/orders/schema", {"schema": SCHEMA})
        events = [{"payload": {"n": n}} for n in range(20)]
        client.ask("POST", "/v1/topics/orders/events", events)
        yield server


@pytest.fixture
def client(server: Serving) -> Http:
    return Http(server)


def sql(client: Http, query: str) -> Reply:
    return client.ask("GET", f"/v1/sql?query={quote(query)}")


def limited(server: Serving, *topics: str) -> Http:
    """Somebody who may read these topics."""
    wanted = TokenRequest(
        name=f"t{time.monotonic_ns()}", scope="topics", subscribe=topics
    )
    return Http(server, KeyFile(server.data).add(wanted, int(time.time() * 1000)))


def test_what_was_just_published_is_in_the_answer(client: Http) -> None:
    client.ask("POST", "/v1/topics", {"name": "fresh"})
    for number in range(1, 4):
        stored = client.ask("POST", "/v1/topics/fresh/events", {"text": "x"})
        assert stored.status == 201

        assert sql(client, "SELECT count(*) FROM fresh").json()["rows"] == [[number]]


def test_fields_of_a_schema_are_columns(client: Http) -> None:
    found = sql(client, "SELECT sum(n)::BIGINT AS total FROM orders").json()

    assert found["columns"] == [{"name": "total", "type": "BIGINT"}]
    assert found["rows"] == [[190]]


def test_a_topic_one_may_not_read_is_like_one_that_is_not_there(
    server: Serving,
) -> None:
    asker = limited(server, "orders")

    hidden = sql(asker, "SELECT * FROM secret")
    nowhere = sql(asker, "SELECT * FROM sekret")
    own = sql(asker, 'SELECT * FROM "$dead-letters"')
    listed = sql(asker, "SHOW TABLES")

    assert hidden.status == nowhere.status == own.status == 422
    assert hidden.body == nowhere.body.replace(b"sekret", b"secret")
    assert listed.json()["rows"] == [["orders"]]


def test_the_limits_of_an_answer_are_those_of_the_settings(client: Http) -> None:
    rows = sql(client, "SELECT n FROM orders ORDER BY n").json()
    long = sql(client, "SELECT repeat('x', 1500) FROM orders").json()
    memory = sql(client, "SELECT repeat('x', 1000000000)")

    assert (rows["rows"], rows["cut"]) == ([[n] for n in range(5)], "rows")
    assert (len(long["rows"]), long["cut"]) == (2, "bytes")
    assert memory.status == 422
    assert memory.json()["detail"] == (
        "the question takes more than 67108864 bytes of memory, "
        "the limit of http.sql_memory_bytes"
    )


def test_time_is_up_when_the_settings_say_so(tmp_path: Path) -> None:
    with served(tmp_path, "[http]\nsql_s = 0.5\n") as server:
        answer = sql(Http(server), ENDLESS)

        assert answer.status == 422
        expected = "the question takes more than 0.5 s, the limit of http.sql_s"
        assert answer.json()["detail"] == expected
        assert children_of(server.pid) == []


def asked(server: Serving, query: str) -> socket.socket:
    """A connection on which the question is being answered."""
    client = Http(server)
    sock = socket.create_connection(client.address, 60)
    sock.sendall(
        f"GET /v1/sql?query={quote(query)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {client.token}\r\n\r\n".encode()
    )
    until(lambda: children_of(server.pid))
    return sock


def test_a_client_that_goes_ends_its_question_and_makes_room(
    server: Serving, client: Http
) -> None:
    sock = asked(server, ENDLESS)
    refused = sql(client, "SELECT 1")
    sock.close()
    until(lambda: not children_of(server.pid))

    assert refused.status == 429
    assert refused.json()["limit"] == "1"
    until(lambda: sql(client, "SELECT 1").status == 200)


def test_others_are_served_while_a_question_is_answered(
    server: Serving, client: Http
) -> None:
    sock = asked(server, ENDLESS)
    try:
        for number in range(20):
            event = {"payload": {"n": number}}
            stored = client.ask("POST", "/v1/topics/orders/events", event)
            assert stored.status == 201
        assert children_of(server.pid), "it is still being answered"
    finally:
        sock.close()
    until(lambda: not children_of(server.pid))


def test_a_process_has_no_socket_of_the_server(server: Serving) -> None:
    sock = asked(server, ENDLESS)
    try:
        (pid,) = children_of(server.pid)
        until(
            lambda: b"penstock.sql.boxed" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        links = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
    finally:
        sock.close()

    assert not [link for link in links if link.startswith("socket:")]
    until(lambda: not children_of(server.pid))


def test_a_server_that_stops_leaves_no_process_behind(tmp_path: Path) -> None:
    with served(tmp_path, "[http]\nsql_s = 600\n") as server:
        with asked(server, ENDLESS) as sock:
            (pid,) = children_of(server.pid)
            answers: list[bytes] = []
            reader = threading.Thread(target=lambda: answers.append(sock.recv(65536)))
            reader.start()

            assert server.stop() == 0
            reader.join()

        assert not Path(f"/proc/{pid}").exists()
        assert b" 503 " in answers[0]


def test_questions_can_be_off(tmp_path: Path) -> None:
    with served(tmp_path, "[http]\nsql_questions = 0\n") as server:
        answer = sql(Http(server), "SELECT 1")
        listed = Http(server).ask("GET", "/v1/sql/topics")

    assert answer.status == listed.status == 429
    assert json.loads(listed.body)["limit"] == "0"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT '\0'",
        "(" * 5_000,
        "SELECT " + "(" * 900 + "1" + ")" * 900,
        "SELECT " + "+".join(["1"] * 5_000),
        "SELECT 'x' LIKE '" + "%a" * 1_000 + "'",
        "\ud800".encode(errors="surrogatepass").decode(errors="replace"),
        ";" * 1_000,
    ],
    ids=range(7),
)
def test_nonsense_is_refused_and_never_a_mistake_of_ours(
    server: Serving, client: Http, query: str
) -> None:
    assert sql(client, query).status in (200, 422)
    assert "Traceback" not in server.log.read_text()
