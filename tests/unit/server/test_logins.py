"""Who is checked when, with passwords whose checks end when they are told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.broker.peer import Peer
from penstock.errors import Busy, LoginRefused, TooManyAttempts
from penstock.gateway.gateway import LoginRequest
from penstock.server import logins as module
from penstock.server import password
from penstock.server.password import Password
from penstock.server.users import Users
from penstock.server.users_file import User, remove_user, set_password, set_rules
from tests.unit.server.scene import House, house, run, turns

NAMES = ("anna", "bert", "carl")
Found = list[tuple[str, module.Found]]


class Checks:
    """What is checked, in the order in which it was begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self._plain = Password.matches

    def matches(self, stored: Password, text: str) -> bool:
        self.begun.append(text)
        self.go_on.wait()
        return self._plain(stored, text)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    checks = Checks()
    monkeypatch.setattr(password, "COST_N", 2)
    monkeypatch.setattr(
        Password, "matches", lambda stored, text: checks.matches(stored, text)
    )
    return checks


@pytest.fixture
def path(tmp_path: Path, checks: Checks) -> Path:
    for name in NAMES:
        set_password(tmp_path / "users", name, f"{name}'s")
    return tmp_path / "users"


class Room:
    def __init__(self, one: House, checks: Checks) -> None:
        self.one = one
        self.found: Found = []
        self._checks = checks

    def ask(self, user: str, word: str, address: str = "192.0.2.1") -> None:
        self.one.listeners.check(
            LoginRequest(user, word),
            lambda found: self.found.append((word, found)),
            Peer("line", 0.0, address),
        )

    async def answers(self, count: int) -> list[str]:
        """So many, as they come: ``in``, or the name of the error."""
        await self.one.until(lambda: len(self.found) >= count)
        return [
            "in" if isinstance(one, User) else type(one).__name__
            for _, one in self.found
        ]


@asynccontextmanager
async def room(path: Path, checks: Checks) -> AsyncIterator[Room]:
    async with house(path.parent / "data", users=Users.load(path)) as one:
        try:
            yield Room(one, checks)
        finally:
            checks.go_on.set()
            one.listeners.end()


def test_made_up_names_cost_no_check_and_delay_nobody(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_S", 3600.0)

    async def scene() -> None:
        async with room(path, checks) as here:
            for number in range(60):
                here.ask(f"nobody{number}", "no")
            here.ask("anna", "anna's")

            assert await here.answers(1) == ["in"]
            assert checks.begun == ["anna's"]

    run(scene())


def test_the_answer_to_a_made_up_name_takes_as_long_as_a_real_one(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LATEST", 1)
    delays: list[float] = []

    async def scene() -> None:
        async with room(path, checks) as here:
            loop = here.one.engine.loop

            class Loop:
                call_soon = staticmethod(loop.call_soon)
                call_soon_threadsafe = staticmethod(loop.call_soon_threadsafe)

                @staticmethod
                def call_later(delay_s: float, *rest: object) -> None:
                    delays.append(delay_s)
                    loop.call_soon(*rest)  # type: ignore[arg-type]

            here.one.listeners.logins._loop = Loop  # type: ignore[assignment]
            now_s = iter((10.0, 12.5, 20.0))
            monkeypatch.setattr(module, "perf_counter", lambda: next(now_s))
            here.ask("anna", "anna's")
            await here.answers(1)
            here.ask("nobody", "no")
            await here.answers(2)

            assert delays[0] == 2.5

    run(scene())


def test_users_and_addresses_take_turns(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "THREADS", 1)
    checks.go_on.clear()

    async def scene() -> None:
        async with room(path, checks) as here:
            for number in range(8):
                here.ask("bert", f"no{number}")
            here.ask("anna", "anna's")
            here.ask("carl", "carl's", "192.0.2.2")
            checks.go_on.set()
            await here.answers(10)

            assert set(checks.begun[:4]) == {"no0", "no1", "carl's", "anna's"}

    run(scene())


def test_as_many_are_checked_at_once_as_there_are_threads(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "THREADS", 2)
    checks.go_on.clear()

    async def scene() -> None:
        async with room(path, checks) as here:
            for name in NAMES:
                here.ask(name, f"{name}'s")
            await here.one.until(lambda: len(checks.begun) == 2)
            await turns(20)
            assert len(checks.begun) == 2
            checks.go_on.set()

            assert await here.answers(3) == ["in"] * 3

    run(scene())


def test_who_waits_behind_too_many_failures_is_refused_without_a_check(
    path: Path, checks: Checks
) -> None:
    checks.go_on.clear()

    async def scene() -> None:
        async with room(path, checks) as here:
            for number in range(15):
                here.ask("anna", f"no{number}")
            checks.go_on.set()

            kinds = await here.answers(15)
            assert sorted(kinds) == ["LoginRefused"] * 10 + ["TooManyAttempts"] * 5
            assert len(checks.begun) == 10
            (error,) = {
                str(one) for _, one in here.found if isinstance(one, TooManyAttempts)
            }
            assert error.endswith("wait 60 s")

    run(scene())


def test_a_fleet_of_one_user_is_checked_once(path: Path, checks: Checks) -> None:
    async def scene() -> None:
        async with room(path, checks) as here:
            for number in range(200):
                here.ask("anna", "anna's", f"192.0.2.{number}")

            assert await here.answers(200) == ["in"] * 200
            assert len(checks.begun) <= module.THREADS
            here.one.clock.advance(module.SHOWN_S)
            before = len(checks.begun)
            here.ask("anna", "anna's")
            await here.answers(201)
            assert len(checks.begun) == before + 1

    run(scene())


def test_a_password_that_is_known_is_no_way_around_the_limit(
    path: Path, checks: Checks
) -> None:
    async def scene() -> None:
        async with room(path, checks) as here:
            here.ask("anna", "anna's", "192.0.2.9")
            await here.answers(1)
            for number in range(10):
                here.ask("anna", f"no{number}")
            here.one.listeners.logins._attempts.succeeded("192.0.2.1", "anna")
            await here.answers(11)

            here.ask("anna", "anna's")

            assert (await here.answers(12))[-1] == "TooManyAttempts"

    run(scene())


def change_password(path: Path) -> None:
    set_password(path, "anna", "new")


def remove(path: Path) -> None:
    remove_user(path, "anna")


@pytest.mark.parametrize("change", [change_password, remove])
def test_what_changes_while_it_is_checked_counts(
    path: Path, checks: Checks, change: Callable[[Path], None]
) -> None:
    checks.go_on.clear()

    async def scene() -> None:
        async with room(path, checks) as here:
            here.ask("anna", "anna's")
            await here.one.until(lambda: checks.begun)
            change(path)
            checks.go_on.set()

            assert await here.answers(1) == ["LoginRefused"]

    run(scene())


def test_rules_that_change_while_it_is_checked_are_those_that_count(
    path: Path, checks: Checks
) -> None:
    checks.go_on.clear()

    async def scene() -> None:
        async with room(path, checks) as here:
            here.ask("anna", "anna's")
            await here.one.until(lambda: checks.begun)
            set_rules(path, "anna", ())
            checks.go_on.set()
            await here.answers(1)

            found = here.found[0][1]
            assert isinstance(found, User)
            assert found.grants.rules == ()

    run(scene())


def test_what_changes_before_the_answer_is_given_counts(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with room(path, checks) as here:
            logins = here.one.listeners.logins
            plain = logins._succeed

            def late(login: module.Login, user: User) -> None:
                plain(login, user)
                remove_user(path, "anna")
                here.one.listeners.check_idle(here.one.clock.now_s())

            monkeypatch.setattr(logins, "_succeed", late)
            here.ask("anna", "anna's")

            assert await here.answers(1) == ["LoginRefused"]

    run(scene())


def test_too_many_that_wait_are_refused(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 4)
    monkeypatch.setattr(module, "THREADS", 1)
    checks.go_on.clear()

    async def scene() -> None:
        async with room(path, checks) as here:
            for number in range(4):  # one is under way, two wait
                here.ask("anna", f"no{number}")
            assert await here.answers(1) == ["Busy"]
            assert isinstance(here.found[0][1], Busy)
            here.ask("anna", "anna's", "192.0.2.2")
            checks.go_on.set()

            assert (await here.answers(5)).count("in") == 1

    run(scene())


def test_logins_that_wait_when_the_server_ends_are_let_be(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "THREADS", 1)
    checks.go_on.clear()
    broken: list[object] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: broken.append(context))
        async with room(path, checks) as here:
            for name in NAMES:
                here.ask(name, f"{name}'s")
            await here.one.until(lambda: checks.begun)
            logins = here.one.listeners.logins
            told: list[module.Login] = []
            plain = logins._checked

            def noted(login: module.Login, user: User, done: Future[bool]) -> None:
                plain(login, user, done)
                told.append(login)

            monkeypatch.setattr(logins, "_checked", noted)

            logins.close()
            checks.go_on.set()
            await here.one.until(lambda: told)

            assert not here.found
            assert not here.one.broker.traffic.failed_logins

    run(scene())
    assert not broken


def test_a_check_may_end_after_the_loop(
    path: Path, checks: Checks, caplog: pytest.LogCaptureFixture
) -> None:
    checks.go_on.clear()
    threads: list[ThreadPoolExecutor] = []

    async def scene() -> None:
        async with house(path.parent / "data", users=Users.load(path)) as one:
            Room(one, checks).ask("anna", "anna's")
            await one.until(lambda: checks.begun)
            threads.append(one.listeners.logins._threads)
            one.listeners.end()

    run(scene())
    checks.go_on.set()
    threads[0].shutdown(wait=True)

    assert not caplog.records


def test_a_check_that_fails_lets_nobody_in(
    path: Path, monkeypatch: pytest.MonkeyPatch, checks: Checks
) -> None:
    def broken(stored: Password, text: str) -> bool:
        raise MemoryError

    monkeypatch.setattr(Password, "matches", broken)

    async def scene() -> None:
        async with room(path, checks) as here:
            here.ask("anna", "anna's")

            assert await here.answers(1) == ["LoginRefused"]

    run(scene())


def test_a_password_that_is_too_long_is_not_checked(path: Path, checks: Checks) -> None:
    async def scene() -> None:
        async with room(path, checks) as here:
            here.ask("anna", "x" * 2000)

            assert await here.answers(1) == ["LoginRefused"]
            assert checks.begun == []

    run(scene())


def test_at_a_suspicious_address_a_wrong_password_is_answered_later(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLOW_S", 3600.0)
    monkeypatch.setattr(module, "FIRST_S", 0.0)

    async def scene() -> None:
        async with room(path, checks) as here:
            for number in range(9):
                here.ask(f"nobody{number}", "no")
            await here.answers(9)
            here.ask("nobody", "no")  # the tenth
            here.ask("bert", "no")
            await here.one.until(lambda: checks.begun)
            here.ask("anna", "anna's")

            assert (await here.answers(10))[9:] == ["in"]
            await asyncio.sleep(0)
            assert len(here.found) == 10
            error = here.found[0][1]
            assert isinstance(error, LoginRefused)

    run(scene())
