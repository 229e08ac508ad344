from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import penstock
from penstock.client.address import PORT, SOCKET_NAME
from penstock.client.tls import Tls
from penstock.clock import ManualClock
from penstock.embedded.opening import target_of
from penstock.embedded.remote import Target
from penstock.errors import DirectoryLocked, InvalidOption, NotRunning
from penstock.testing import CrashDisk


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("penstock://host", Target(f"host:{PORT}", None, None, "me")),
        ("penstock://host:77/", Target("host:77", None, None, "me")),
        ("penstock://[::1]:77", Target("[::1]:77", None, None, "me")),
        ("penstock://a%40b:p%3A@host:1", Target("host:1", "a@b", "p:", "me")),
        ("penstock:///a/b%20c", Target("/a/b c", None, None, "me")),
        (
            "penstock+tls://ann:x@host",
            Target("penstock+tls://host:8410", "ann", "x", "me", Tls()),
        ),
    ],
)
def test_a_url_says_where_and_who(url: str, target: Target) -> None:
    assert target_of(url, "me") == target


@pytest.mark.parametrize(
    "url",
    [
        "penstock:",
        "penstock://",
        "penstock://host/path",
        "penstock://host:port",
        "penstock://host:99999",
        "penstock://host?x=1",
        "penstock://host#x",
        "penstock://[::1",
        "http://host:1",
        "amqp+tls://host",
        "penstock+tls:///directory",
    ],
)
def test_a_url_that_makes_no_sense_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidOption, match="url"):
        target_of(url, "")
    with pytest.raises(InvalidOption, match="url"), penstock.open(url):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_scheme_of_a_url_may_be_written_large(tmp_path: Path) -> None:
    with (
        penstock.open(tmp_path),
        penstock.open(f"Penstock://{tmp_path}") as broker,
    ):
        assert broker.publish("t", b"x").offset == 0


def test_a_path_is_no_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with penstock.open(Path("penstock:data")) as broker:
        broker.publish("t", b"x")

    assert (tmp_path / "penstock:data" / "journal").is_dir()


def test_nobody_there_has_a_hint_for_programs(tmp_path: Path) -> None:
    with pytest.raises(NotRunning) as caught, penstock.open(f"penstock://{tmp_path}"):
        pass

    assert "penstock.open" in caught.value.hint
    assert "--" not in caught.value.hint


def test_a_directory_is_made_and_belongs_to_one(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "new", name="me") as broker:
        broker.publish("t", b"x")
        assert (tmp_path / "new" / SOCKET_NAME).exists()
        with pytest.raises(DirectoryLocked), penstock.open(tmp_path / "new"):
            pass
        assert broker.publish("t", b"y").offset == 1

    with penstock.open(tmp_path / "new") as broker:
        assert broker.publish("t", b"z").offset == 2


def test_nobody_listens_where_nobody_shall(tmp_path: Path) -> None:
    options = penstock.LocalOptions(listen=False)

    with penstock.open(str(tmp_path), options=options):
        assert not (tmp_path / SOCKET_NAME).exists()


def test_the_clock_and_the_files_may_be_others() -> None:
    disk = CrashDisk()

    async def run() -> int:
        clock = ManualClock(5.0)
        async with penstock.open("/data", clock=clock, files=disk) as broker:
            domain, seen = penstock.Domain("a"), []

            @domain.on("t")
            async def handle(event: penstock.Event[bytes]) -> None:
                seen.append(event.timestamp_ms)

            await broker.start(domain)
            await broker.publish("t", b"x")
            await broker.wait_until_settled(60)
            return seen[0]

    assert asyncio.run(run()) == 5000
    assert any(path.startswith("/data") for path in disk.paths())


def test_a_broker_that_was_not_opened_leaves_no_loop_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(Exception, match="file"), penstock.open(tmp_path / "file"):
        pass

    assert "penstock-loop" not in {one.name for one in threading.enumerate()}
