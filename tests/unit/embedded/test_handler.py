from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest

from penstock.embedded.context import Context
from penstock.embedded.event import Event
from penstock.embedded.handler import Handler, is_async, place_of
from penstock.embedded.options import HandlerOptions
from penstock.embedded.topic import Topic
from penstock.errors import InvalidHandler
from tests.unit.embedded.scene import handler_of


class Order(msgspec.Struct):
    total: int


class Callable_:
    def __call__(self, event: Event[Order]) -> None: ...


class AsyncCallable:
    async def __call__(self, event: Event[Order], context: Context) -> None: ...

    async def method(self, event: Event[Order]) -> None: ...


def one(event: Event[Order]) -> None: ...
def two(event: Event[Order], context: Context) -> None: ...
def perhaps(event: Event[Order], context: Context | None = None) -> None: ...
def with_option(event: Event[Order], retries: int = 3) -> None: ...
def anything(*arguments: Any) -> None: ...
def bare(event, context): ...
async def coroutine(event: Event[Order]) -> None: ...
def partly(extra: int, event: Event[Order], context: Context) -> None: ...
def many(events: list[Event[Order]]) -> None: ...


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def outer(*arguments: Any) -> Any:
        return function(*arguments)

    return outer


@pytest.mark.parametrize(
    ("function", "with_context", "asynchronous", "type_"),
    [
        (one, False, False, Order),
        (two, True, False, Order),
        (perhaps, True, False, Order),
        (with_option, False, False, Order),
        (anything, True, False, bytes),
        (bare, True, False, bytes),
        (coroutine, False, True, Order),
        (Callable_(), False, False, Order),
        (AsyncCallable(), True, True, Order),
        (AsyncCallable().method, False, True, Order),
        (lambda event: None, False, False, bytes),
        (functools.partial(partly, 3), True, False, Order),
        (functools.partial(coroutine), False, True, Order),
        (wrapped(two), True, False, Order),
    ],
)
def test_a_function_says_what_it_takes(
    function: Any, with_context: bool, asynchronous: bool, type_: Any
) -> None:
    handler = handler_of(function)

    assert handler.with_context is with_context
    assert handler.is_async is asynchronous
    if type_ is Order and isinstance(function, functools.partial):
        assert handler.codec.type in (Order, bytes)
    else:
        assert handler.codec.type is type_


def test_the_type_of_a_batch_is_that_of_its_events() -> None:
    handler = Handler.of("t", many, HandlerOptions(batch=5))

    assert handler.codec.type is Order


def test_the_type_of_the_topic_counts_first() -> None:
    topic = Topic("t", int)

    handler = handler_of(one, topic)

    assert handler.codec is topic.codec
    assert handler.typed is topic
    assert handler_of(one).typed is None


def none() -> None: ...
def three(event: Any, context: Any, more: Any) -> None: ...
def keyword(event: Any, *, needed: int) -> None: ...
def generator(event: Any) -> Any:
    yield


async def generator_too(event: Any) -> Any:
    yield


def unknown(event: Event[Nowhere]) -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    "function", [none, three, keyword, generator, generator_too, unknown, 5, "text"]
)
def test_what_cannot_be_a_handler_is_refused(function: Any) -> None:
    with pytest.raises(InvalidHandler):
        handler_of(function)


def test_the_place_of_a_function_is_its_file_and_line() -> None:
    line = one.__code__.co_firstlineno

    assert place_of(one) == f"one ({__file__}:{line})"
    assert place_of(wrapped(one)) == place_of(one)
    assert "Callable_" in place_of(Callable_())


def test_async_is_what_has_to_be_awaited() -> None:
    assert is_async(coroutine)
    assert is_async(AsyncCallable())
    assert not is_async(one)
    assert not is_async(Callable_())
