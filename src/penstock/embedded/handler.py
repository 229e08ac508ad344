"""A handler: the function, what it takes, how it is run, and where it was written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args, get_origin, get_type_hints

from penstock.broker.names import accepted_topic
from penstock.embedded.event import Event
from penstock.embedded.options import HandlerOptions
from penstock.embedded.payload import Codec
from penstock.embedded.topic import Topic
from penstock.errors import InvalidHandler

CONTEXT = "context"

Function = Callable[..., Any]  # of (event, context), (event), or their batch twins


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One function that handles the events of a topic."""

    topic: str
    function: Function
    codec: Codec[Any]
    options: HandlerOptions
    typed: Topic[Any] | None
    """The topic as it was given, if with its type: one that was only read off the
    function says what it makes of payloads, not what they are."""
    with_context: bool
    is_async: bool
    where: str
    """The place of the function, for people."""

    @classmethod
    def of(
        cls, topic: Topic[Any] | str, function: Function, options: HandlerOptions
    ) -> Handler:
        """Look at a function; raises InvalidHandler if it cannot be a handler."""
        where = place_of(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(
            function
        ):
            raise InvalidHandler(where, "has a yield: calling it would do nothing")
        count = _positional(function, where)
        typed = topic if isinstance(topic, Topic) else None
        name = topic.name if isinstance(topic, Topic) else accepted_topic(topic)
        if typed is None:
            type_ = _annotated(function, where, batch=bool(options.batch))
            codec: Codec[Any] = Codec(type_)
        else:
            codec = typed.codec
        return cls(
            topic=name,
            function=function,
            codec=codec,
            options=options,
            typed=typed,
            with_context=count > 1,
            is_async=is_async(function),
            where=where,
        )


def is_async(function: Function) -> bool:
    """Whether a call has to be awaited."""
    call = getattr(function, "__call__", None)  # noqa: B004 - objects with a method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def place_of(function: Function) -> str:
    """Where a function is written: file and line, as far as that is known."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = getattr(plain, "__qualname__", repr(plain))
    if code is None:
        return str(name)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})"


def _positional(function: Function, where: str) -> int:
    """How many of (event, context) the function wants.

    A second parameter that may be left out is left out, unless it is ``context``.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvalidHandler(where, "cannot be called") from None
    plain = [
        one
        for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    needed = [one for one in plain if one.default is one.empty]
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 2
    keyword_only = [
        one
        for one in parameters
        if one.kind is one.KEYWORD_ONLY and one.default is one.empty
    ]
    if not len(plain) >= 1 or len(needed) > 2 or keyword_only:
        raise InvalidHandler(where, "has to take an event, and a context if it likes")
    if len(plain) > 1 and (len(needed) == 2 or plain[1].name == CONTEXT):
        return 2  # what has a default of its own keeps it
    return 1


def _annotated(function: Function, where: str, *, batch: bool) -> Any:
    """The X of a first parameter of type Event[X], or list[Event[X]]; else bytes."""
    plain = inspect.unwrap(function)
    names = list(inspect.signature(plain).parameters)
    if isinstance(plain, partial):
        plain = plain.func
    elif not inspect.isroutine(plain):
        plain = type(plain).__call__
    try:
        hints = get_type_hints(plain)
    except (NameError, TypeError) as error:
        reason = f"has a type that cannot be resolved ({error})"
        raise InvalidHandler(where, f"{reason}: subscribe to a Topic instead") from None
    hint = hints.get(names[0]) if names else None
    if batch and get_origin(hint) is list:
        hint = get_args(hint)[0]
    if get_origin(hint) is Event:
        return get_args(hint)[0]
    return bytes
