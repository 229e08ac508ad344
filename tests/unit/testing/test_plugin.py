from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

# Loaded here, as what the inner runs load is forgotten after each of them.
import penstock.testing.blocking
import penstock.testing.replaying  # noqa: F401

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[3]

# As the entry point names it, so that it does not matter whether that is installed.
LOADED = ("-p", "penstock.testing.plugin", "-p", "no:cacheprovider")

APP = """
import msgspec
import pytest
from penstock import Context, Domain, Event, Topic

class Order(msgspec.Struct):
    total: int

orders = Topic("orders", Order)
totals = Topic("totals", int)
billing = Domain("billing")

@billing.on(orders, backoff_s=3600.0, max_backoff_s=3600.0)
async def charge(event: Event[Order], context: Context) -> None:
    context.publish(totals, event.payload.total)
"""


# What pytest-asyncio does, in short.
RUN_ASYNC = """
import asyncio, inspect

def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.function):
        names = pyfuncitem._fixtureinfo.argnames
        arguments = {name: pyfuncitem.funcargs[name] for name in names}
        asyncio.run(pyfuncitem.function(**arguments))
        return True
"""


def run(pytester: pytest.Pytester, tests: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(app=APP, test_app=f"from app import *\n{tests}")
    return pytester.runpytest_inprocess(*LOADED, "--strict-markers", *arguments)


@pytest.mark.slow
def test_a_test_that_is_not_async_gets_a_broker(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_orders_are_charged(penstock_broker, penstock_clock):
    penstock_broker.start(billing)
    penstock_broker.fail(billing, orders, times=2)
    begin_s = penstock_clock.now_s()
    penstock_broker.publish(orders, Order(3))
    penstock_broker.wait_until_settled()
    assert [one.payload for one in penstock_broker.events(totals)] == [3]
    assert penstock_clock.now_s() > begin_s + 3600, "two pauses"

def test_every_test_has_its_own(penstock_broker):
    assert penstock_broker.events(totals) == []

def test_one_that_is_not_used_is_never_opened(penstock_broker):
    assert penstock_broker._harness is None
""",
    )

    result.assert_outcomes(passed=3)


@pytest.mark.slow
def test_an_async_test_enters_it(pytester: pytest.Pytester) -> None:
    pytest.importorskip("anyio", reason="component: anyio (not installed)")
    result = run(
        pytester,
        """
@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_orders_are_charged(penstock_broker):
    async with penstock_broker as broker:
        await broker.start(billing)
        broker.fail(billing, orders, times=2)
        await broker.publish(orders, Order(3))
        await broker.wait_until_settled()
        assert [one.payload for one in broker.events(totals)] == [3]
""",
    )

    result.assert_outcomes(passed=1)


MARKED = """
@pytest.mark.penstock(disk=True, patience_s=1.0)
def test_marked(penstock_broker, tmp_path):
    penstock_broker.publish(orders, Order(3))
    assert (tmp_path / "penstock" / "journal").is_dir()

@pytest.mark.penstock(disk=False)
def test_marked_otherwise(penstock_broker, tmp_path):
    penstock_broker.publish(orders, Order(3))
    assert not (tmp_path / "penstock").exists()
"""
PLAIN = """
def test_plain(penstock_broker, tmp_path):
    penstock_broker.publish(orders, Order(3))
    assert (tmp_path / "penstock").exists() is %s
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plain", "arguments"),
    [
        ("False", ()),
        ("True", ("--penstock-disk",)),
        ("True", ("-o", "penstock_disk=true")),
    ],
)
def test_the_broker_is_in_memory_or_on_disk(
    pytester: pytest.Pytester, plain: str, arguments: tuple[str, ...]
) -> None:
    result = run(pytester, MARKED + PLAIN % plain, *arguments)

    result.assert_outcomes(passed=3)


@pytest.mark.slow
def test_a_failing_test_closes_its_broker(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(penstock_broker):
    penstock_broker.start(billing)
    penstock_broker.slow(billing, orders, 5.0)
    penstock_broker.publish(orders, Order(3))
    penstock_broker.advance(1.0)
    raise KeyError("on purpose")
""",
        "-Werror::ResourceWarning",
        "-Werror::pytest.PytestUnraisableExceptionWarning",
        "-Werror::pytest.PytestUnhandledThreadExceptionWarning",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*KeyError: 'on purpose'*"])


@pytest.mark.slow
def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    snippets = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    pytester.makeconftest(RUN_ASYNC)
    pytester.makepyfile("\n".join(snippets))

    result = pytester.runpytest_inprocess(*LOADED)

    result.assert_outcomes(passed=3)


@pytest.mark.slow
def test_it_loads_nothing_until_it_is_used(tmp_path: Path) -> None:
    """pytest loads it in every project where Penstock is installed."""
    code = "import sys, pytest; before = set(sys.modules)\n"
    code += "import penstock.testing.plugin; print(*set(sys.modules) - before)"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    loaded = [name for name in done.stdout.split() if name.startswith("penstock")]
    assert sorted(loaded) == [
        "penstock",
        "penstock.testing",
        "penstock.testing.plugin",
    ]
    assert not {"asyncio", "msgspec", "uvloop"} & set(done.stdout.split())


def test_the_package_gives_its_names_and_no_others() -> None:
    from penstock import testing

    assert set(testing.__all__) <= set(dir(testing))
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        testing.nothing  # noqa: B018 - the look-up is what is tested
