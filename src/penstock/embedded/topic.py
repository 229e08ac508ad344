"""A topic and the type of its payloads, known to publishers and handlers alike."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar, overload

from penstock.broker.names import accepted_topic
from penstock.embedded.payload import Codec, type_name

T = TypeVar("T")
Compatibility = Literal["backward", "forward", "full", "none"]


class Topic(Generic[T]):
    """``Topic("orders", Order)``: whatever is published to it is an Order.

    Without a type payloads are bytes. The schema of the type is stored with the topic
    when it is first used, unless ``register`` is off: then the type is a view of what
    others publish. ``compatibility`` is what a changed type has to keep, see
    docs/schemas.md; ``doc`` is Markdown that is stored with the topic.
    """

    __slots__ = ("codec", "compatibility", "doc", "name", "registers")

    @overload
    def __init__(
        self: Topic[bytes],
        name: str,
        *,
        doc: str = ...,
        compatibility: Compatibility | None = ...,
        register: bool = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        type_: type[T],
        *,
        doc: str = ...,
        compatibility: Compatibility | None = ...,
        register: bool = ...,
    ) -> None: ...

    def __init__(
        self,
        name: str,
        type_: type[object] = bytes,
        *,
        doc: str = "",
        compatibility: Compatibility | None = None,
        register: bool = True,
    ) -> None:
        self.name = accepted_topic(name)
        # The overloads have said that ``type_`` is T.
        self.codec: Codec[T] = Codec(type_)  # type: ignore[arg-type]
        self.doc = doc
        self.compatibility = compatibility
        self.registers = register

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {type_name(self.codec.type)})"
