"""Who made a topic is known after kill -9, as long as the topic is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.access.quota import Quota
from penstock.client import Client, connect
from penstock.errors import PenstockError, ServerRefused
from penstock.server import password
from penstock.server.users_file import set_password, set_quota
from tests.effort import effort
from tests.http_client import Http
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

KILLS = effort(2, 5)
BEFORE_A_KILL = 20
MOST = 1000
ONLY = ("--no-line", "--no-json", "--no-maze", "--no-mqtt")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    monkeypatch.setattr(password, "COST_N", 2)
    users = tmp_path / "users"
    set_password(users, "anna", "x")
    set_quota(users, "anna", Quota(topics=MOST))
    with serving(tmp_path, "--users-file", str(users), *ONLY) as server:
        yield server


def anna(server: Serving) -> Client:
    where = f"127.0.0.1:{server.ports['native']}"
    return connect(where, user="anna", password="x")


class Maker:
    """Makes one topic after the other until the server is gone."""

    def __init__(self, server: Serving, kill: int) -> None:
        self.confirmed: list[str] = []
        self.enough = threading.Event()
        self._client = anna(server)
        self._kill = kill
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> list[str]:
        self._thread.join()
        self._client.close()
        return self.confirmed

    def _run(self) -> None:
        for number in range(MOST):
            name = f"mine-{self._kill}-{number}"
            try:
                self._client.publish(name, [b"x"])
            except PenstockError:
                return
            finally:
                if number >= BEFORE_A_KILL:
                    self.enough.set()
            self.confirmed.append(name)


def topics(server: Serving) -> set[str]:
    rows = Http(server).ask("GET", "/v1/topics").json()["topics"]
    return {row["name"] for row in rows if row["name"].startswith("mine")}


def counted(server: Serving) -> int:
    page = Http(server).ask("GET", "/v1/users/usage?user=anna").json()
    found: int = page["users"][0]["topics"]
    return found


def test_who_made_a_topic_is_known_after_a_kill(
    server: Serving, tmp_path: Path
) -> None:
    confirmed: set[str] = set()
    Http(server).ask("POST", "/v1/topics", {"name": "mine-but-not-hers"})
    for kill in range(KILLS):
        maker = Maker(server, kill)
        maker.enough.wait()
        server.kill()
        confirmed |= set(maker.join())
        server.start()

        there = topics(server)
        assert confirmed <= there
        assert counted(server) == len(there) - 1
        gone = confirmed.pop()
        assert Http(server).ask("DELETE", f"/v1/topics/{gone}").status == 200

    server.kill()
    server.start()
    left = topics(server)
    assert gone not in left
    assert counted(server) == len(left) - 1
    set_quota(tmp_path / "users", "anna", Quota(topics=len(left)))
    with anna(server) as client:
        client.publish("mine-last", [b"x"])
        with pytest.raises(ServerRefused, match="topics is"):
            client.publish("mine-too-many", [b"x"])
    assert topics(server) == {*left, "mine-last"}
