"""Which route a path leads to: a tree of segments, where what is written wins.

``/v1/dead-letters/groups`` is itself and not letter ``groups``; ``/v1/events/{id}``
takes any segment but an empty one.

Names in paths are one segment each, percent-encoded, so that they may hold anything:
``/v1/topics/a%2Fb`` is about the topic ``a/b``. So a path is split while it is still
encoded, and each segment is decoded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar
from urllib.parse import quote, unquote_to_bytes

from penstock.errors import BadRequest, NoRoute, WrongMethod

# More is no route of ours.
MAX_SEGMENTS = 16


def segments_of(raw_path: bytes) -> tuple[str, ...]:
    """The segments of a path as they were sent, decoded; raises BadRequest."""
    parts = raw_path.split(b"/")
    if parts[0] or len(parts) < 2:
        raise BadRequest("the path has to begin with /")
    if len(parts) > MAX_SEGMENTS:
        raise BadRequest(f"the path has more than {MAX_SEGMENTS} segments")
    return tuple(map(_decoded, parts[1:]))


def segment(name: str) -> str:
    """A name as a segment of a path."""
    return quote(name, safe="")


def _decoded(part: bytes) -> str:
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        shown = part[:80].decode("ascii", "replace")
        raise BadRequest(f"path segment {shown!r} is not UTF-8") from None
    if "\0" in text:
        raise BadRequest("the path contains a NUL character")
    return text


AnyTarget = TypeVar("AnyTarget")


class _RouteNode(Generic[AnyTarget]):
    __slots__ = ("any", "targets", "written")

    def __init__(self) -> None:
        self.written: dict[str, _RouteNode[AnyTarget]] = {}
        self.any: _RouteNode[AnyTarget] | None = None
        self.targets: dict[str, tuple[AnyTarget, tuple[str, ...]]] = {}


class Router(Generic[AnyTarget]):
    def __init__(self) -> None:
        self._root: _RouteNode[AnyTarget] = _RouteNode()

    def add(self, method: str, path: str, target: AnyTarget) -> None:
        """Lead requests of that kind to a target, of which there is none yet."""
        node, names = self._root, []
        for part in path.split("/")[1:]:
            if part.startswith("{"):
                names.append(part[1:-1])
                node.any = node.any or _RouteNode()
                node = node.any
            else:
                node = node.written.setdefault(part, _RouteNode())
        assert method not in node.targets, f"two routes for {method} {path}"
        node.targets[method] = target, tuple(names)

    def find(
        self, method: str, segments: tuple[str, ...]
    ) -> tuple[AnyTarget, dict[str, str]]:
        """The target, and the parameters by name; raises NoRoute, WrongMethod."""
        allowed: set[str] = set()
        wanted = "GET" if method == "HEAD" else method
        for node, values in _leaves(self._root, segments, ()):
            if wanted in node.targets:
                target, names = node.targets[wanted]
                return target, dict(zip(names, values, strict=True))
            allowed.update(node.targets)
        path = "/" + "/".join(segments)
        if not allowed:
            raise NoRoute(path)
        if "GET" in allowed:
            allowed.add("HEAD")
        raise WrongMethod(method, path, tuple(sorted(allowed)))


def _leaves(
    node: _RouteNode[AnyTarget], segments: tuple[str, ...], values: tuple[str, ...]
) -> Iterator[tuple[_RouteNode[AnyTarget], tuple[str, ...]]]:
    """The nodes that a path may mean, the most exact first."""
    if not segments:
        if node.targets:
            yield node, values
        return
    first, rest = segments[0], segments[1:]
    if first in node.written:
        yield from _leaves(node.written[first], rest, values)
    if first and node.any is not None:
        yield from _leaves(node.any, rest, (*values, first))
