"""Who is checked when, with passwords whose checks end when they are told to."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.access.peer import Peer
from penstock.broker.traffic import Traffic
from penstock.errors import Busy, LoginRefused, TooManyAttempts
from penstock.gateway.gateway import LoginRequest
from penstock.server import logins as module
from penstock.server import password
from penstock.server.password import Password
from penstock.server.users import Users
from penstock.server.users_file import UserEntry, remove_user, set_password, set_rules
from tests.unit.server.scene import House, house, run, turns

NAMES = ("anna", "bert", "carl")
Found = list[tuple[str, module.LoginResult]]


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
            "in" if isinstance(one, UserEntry) else type(one).__name__
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
    path: Path, checks: Checks
) -> None:
    async def scene() -> None:
        async with room(path, checks) as here:
            here.ask("anna", "no")
            await here.answers(1)
            here.one.listeners.logins._latest = deque([3600.0])
            for number in range(60):
                here.ask(f"nobody{number}", "no")
            here.ask("anna", "anna's")

            assert (await here.answers(2))[1:] == ["in"]
            assert checks.begun == ["no", "anna's"]

    run(scene())


class Simulation:
    """Loop, threads and clock of logins, where nothing takes time but checks."""

    CHECK_S = 1.0

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(module, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(module, "THREADS", 2)
        self.checked = 0
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._number = count()
        loop = cast("asyncio.AbstractEventLoop", self)
        self._logins = module.Logins(
            loop, lambda: self.now_s, Traffic(0.0), Users.load(path), 100
        )
        self._logins._threads.shutdown()
        self._logins._threads = cast("ThreadPoolExecutor", self)

    # What logins call

    def call_later(self, delay_s: float, what: Callable[..., object], *of: Any) -> None:
        run: Callable[[], object] = partial(what, *of)
        heapq.heappush(self._due, (self.now_s + delay_s, next(self._number), run))

    def call_soon(self, what: Callable[..., object], *of: Any) -> None:
        self.call_later(0.0, what, *of)

    call_soon_threadsafe = call_soon

    def submit(self, matches: Callable[[str], bool], word: str) -> Future[bool]:
        done: Future[bool] = Future()
        self.checked += 1
        self.call_later(self.CHECK_S, lambda: done.set_result(False))
        return done

    # What tests call

    def ask(self, user: str, address: str, told: list[tuple[str, float]]) -> None:
        self._logins.check(
            LoginRequest(user, "no"),
            lambda found: told.append((type(found).__name__, self.now_s - since_s)),
            Peer("line", 0.0, address),
        )
        since_s = self.now_s

    def run(self) -> None:
        while self._due:
            self.now_s, _, what = heapq.heappop(self._due)
            what()


@pytest.mark.parametrize(
    "addresses",
    [["a"], ["a"] * 8, list("abcdefgh"), list("aaaabbbbccccdddd"), list("abcabc")],
)
@pytest.mark.parametrize("before", ["nobody has come", "a crowd", "a few"])
def test_wrong_passwords_are_answered_alike_whether_a_name_is_made_up_or_not(
    path: Path, monkeypatch: pytest.MonkeyPatch, addresses: list[str], before: str
) -> None:
    crowd = {"nobody has come": 0, "a few": 3, "a crowd": 24}[before]
    told: dict[str, list[tuple[str, float]]] = {"anna": [], "nobody": []}
    for name, answers in told.items():
        here = Simulation(path, monkeypatch)
        for number in range(crowd):
            here.ask(NAMES[1 + number % 2], f"there {number}", [])
        here.run()
        for address in addresses:
            here.ask(name, address, answers)
        here.run()

    assert told["nobody"] == told["anna"]
    assert told["anna"][0] == ("LoginRefused", 1.0)


@pytest.mark.parametrize("name", ["anna", "nobody"])
def test_one_try_waits_its_turn_whether_its_name_is_made_up_or_not(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    here = Simulation(path, monkeypatch)
    told: list[tuple[str, float]] = []
    for number in range(6):
        here.ask("bert", f"there {number}", [])
    here.ask(name, "a", told)
    here.run()

    assert told == [("LoginRefused", 4.0)]


def test_made_up_names_are_checked_once_to_know_how_long_that_takes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Simulation(path, monkeypatch)
    for number in range(50):
        here.ask(f"nobody {number}", "a", [])
    here.run()

    assert here.checked == 1


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


@pytest.mark.slow
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


@pytest.mark.slow
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
            assert isinstance(found, UserEntry)
            assert found.grants.rules == ()

    run(scene())


def test_what_changes_before_the_answer_is_given_counts(
    path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with room(path, checks) as here:
            logins = here.one.listeners.logins
            plain = logins._succeed

            def late(login: module.WaitingLogin, user: UserEntry) -> None:
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
            logins = here.one.listeners.logins
            told: list[module.WaitingLogin] = []
            plain = logins._checked

            def noted(
                login: module.WaitingLogin,
                user: UserEntry,
                took_s: float,
                done: Future[bool],
            ) -> None:
                plain(login, user, took_s, done)
                told.append(login)

            monkeypatch.setattr(logins, "_checked", noted)
            for name in NAMES:
                here.ask(name, f"{name}'s")
            await here.one.until(lambda: checks.begun)

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
