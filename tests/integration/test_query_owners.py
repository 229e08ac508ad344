"""Queries of users at a real server: each its user's own, within the user's quota."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from penstock.access.grants import Rule
from penstock.access.quota import Quota
from penstock.client import Client, connect
from penstock.client.feed import Feed, FeedEvents
from penstock.errors import ServerRefused
from penstock.server import password
from penstock.server.users_file import set_password, set_quota, set_rules
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("owners")
    users = folder / "users"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(password, "COST_N", 2)
        for name in ("anna", "bert", "boss", "slow", "ruled", "silent"):
            set_password(users, name, "x")
    set_rules(users, "boss", None, admin=True)
    set_rules(users, "ruled", (Rule("publish", "sensors/#"),))
    set_rules(users, "silent", (Rule("subscribe", "sensors/#"),))
    set_quota(users, "slow", Quota(events_per_s=20))
    config = folder / "penstock.toml"
    config.write_text("[broker]\nmax_sink_bytes = 4096\nmax_sinks = 20\n")
    flags = ("--users-file", str(users), "--no-maze", "--config", str(config))
    with serving(folder, *flags) as server:
        yield server


def where(server: Serving) -> str:
    return f"127.0.0.1:{server.ports['native']}"


def native(server: Serving, user: str) -> Client:
    return connect(where(server), user=user, password="x")


def test_nobody_else_has_the_epochs_of_a_query_taken_for_stored(
    server: Serving,
) -> None:
    with native(server, "anna") as anna, native(server, "bert") as bert:
        write(anna, "victim", 0)
        for verb, more in (
            ("sinks.commit", {"epoch": 1 << 60, "parts": []}),
            ("sinks.commit", {"epoch": 1, "parts": [], "owner": "anna"}),
            ("sinks.abort", {"epoch": 1}),
            ("sinks.last", {}),
        ):
            with pytest.raises(ServerRefused, match="another user, victim") as caught:
                bert.ask(verb, query="victim", **more)
            assert caught.value.error == "NotAllowed"
        with pytest.raises(ServerRefused, match="another user, victim"):
            bert.stage("victim", 1, 0, 0, "t", [b"x"])

        write(anna, "victim", 1)
        assert anna.fetch("t", 0, 10).next_offset == 2
        with native(server, "boss") as boss:
            assert boss.ask("sinks.last", query="victim")["epoch"] == 1  # type: ignore[index]


def test_what_is_staged_is_for_nobody_else_before_the_first_commit(
    server: Serving,
) -> None:
    with native(server, "anna") as anna, native(server, "bert") as bert:
        anna.stage("begun", 0, 0, 0, "begun", [b"of anna"])
        for verb, more in (
            ("sinks.abort", {"epoch": 0}),
            ("sinks.commit", {"epoch": 0, "parts": [(0, 0)]}),
        ):
            with pytest.raises(ServerRefused, match="another user, begun"):
                bert.ask(verb, query="begun", **more)
        with pytest.raises(ServerRefused, match="another user, begun"):
            bert.stage("begun", 0, 1, 0, "begun", [b"of bert"])

        anna.ask("sinks.commit", query="begun", epoch=0, parts=[(0, 0)])
        assert anna.fetch("begun", 0, 10).next_offset == 1


def test_what_was_given_up_leaves_the_query_to_others(server: Serving) -> None:
    with native(server, "anna") as anna, native(server, "bert") as bert:
        anna.stage("given-up", 0, 0, 0, "t-given-up", [b"of anna"])
        anna.ask("sinks.abort", query="given-up", epoch=0)

        bert.stage("given-up", 0, 0, 0, "t-given-up", [b"of bert"])
        bert.ask("sinks.commit", query="given-up", epoch=0, parts=[(0, 0)])


def test_whoever_may_publish_nothing_begins_no_query(server: Serving) -> None:
    refused = pytest.raises(ServerRefused, match="write with query begun-by")
    with native(server, "silent") as silent, refused:
        silent.stage("begun-by-silent", 0, 0, 0, "t", [])


def write(client: Client, query: str, epoch: int) -> None:
    client.stage(query, epoch, 0, 0, "t", [b"event"])
    done = client.ask("sinks.commit", query=query, epoch=epoch, parts=[(0, 0)])
    assert done == {"committed": True, "before": False, "events": 1, "note": ""}


def test_a_query_of_an_administrator_without_a_name_is_not_for_users(
    server: Serving,
) -> None:
    with connect(server.data) as owner, native(server, "bert") as bert:
        owner.ask("sinks.commit", query="house", epoch=0, parts=[])
        with pytest.raises(ServerRefused, match="another user, house"):
            bert.ask("sinks.commit", query="house", epoch=9, parts=[])
        owner.ask("sinks.commit", query="house", epoch=1, parts=[])


def test_made_up_queries_leave_those_of_others_alone(server: Serving) -> None:
    with native(server, "anna") as anna, native(server, "bert") as bert:
        anna.ask("sinks.commit", query="real", epoch=4, parts=[])
        for number in range(40):
            bert.ask("sinks.commit", query=f"made up {number}", epoch=0, parts=[])

        assert anna.ask("sinks.last", query="real")["epoch"] == 4  # type: ignore[index]


def test_letters_of_a_user_with_a_rate_wait(server: Serving) -> None:
    letters = [("odd", b"x" * 1000)] * 40
    began_s = time.monotonic()
    with native(server, "slow") as slow:
        for epoch in range(2):
            more = {"parts": [], "letters": letters, "gateway": "cdc"}
            slow.ask("sinks.commit", query="flood", epoch=epoch, **more)

    assert time.monotonic() - began_s >= 0.9  # 40 at 20 a second, one second for free


def test_a_user_with_rules_forges_no_letter_of_a_gateway(server: Serving) -> None:
    with native(server, "ruled") as ruled:
        more = {"parts": [], "letters": [("forged", b"x")]}
        for gateway in ("mqtt", "json consumer", "line"):
            with pytest.raises(ServerRefused, match="gateway"):
                ruled.ask("sinks.commit", query="r", epoch=0, gateway=gateway, **more)


def test_feeds_of_users_work_and_their_notes_are_bounded(server: Serving) -> None:
    login = {"gateway": "ingest sse", "user": "ruled", "password": "x"}
    with Feed(where(server), "feed", **login) as feed:  # type: ignore[arg-type]
        batch = FeedEvents("sensors/1", [b"1"])
        feed.put([batch], note="place 1", letters=[("odd", b"x")])
        with pytest.raises(ServerRefused, match="max_sink_bytes"):
            feed.put([batch], note="x" * 1500)
        feed.put([batch], note="place 2")
    with Feed(where(server), "feed", **login) as again:  # type: ignore[arg-type]
        assert again.note == "place 2"
