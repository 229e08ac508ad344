"""Which clients want a topic, and which topics a filter wants: trees of levels.

Both trees hold texts with slashes between their levels. A node stands for the levels
of its edge, behind those of its parents: one level where paths part, many where there
is nothing to part from, so a filter of 65 535 levels is one node. Nothing here calls
itself, and no regular expression is made of what a stranger sends.

A node that holds nothing has at least two children, the root excepted; the first level
of its edge is the key that its parent knows it by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

TreeKey = TypeVar("TreeKey")
TreeValue = TypeVar("TreeValue")
Held = TypeVar("Held")

# Where everything below a node is wanted, instead of a place in the filter.
_ALL: Final = -1


class FilterTree(Generic[TreeKey, TreeValue]):
    """Values by filter and key, found by the names that the filters match."""

    def __init__(self) -> None:
        self._tree: _Tree[dict[TreeKey, TreeValue]] = _Tree()
        self._count = 0
        self.steps = 0
        """Nodes that were looked at so far: many filters may be alike."""

    def __len__(self) -> int:
        """How many pairs of filter and key there are."""
        return self._count

    def add(self, filter: str, key: TreeKey, value: TreeValue) -> None:
        """Keep ``value`` for this filter and key; one that was there is replaced."""
        node = self._tree.place(filter)
        if node.held is None:
            node.held = {}
        self._count += key not in node.held
        node.held[key] = value

    def remove(self, filter: str, key: TreeKey) -> bool:
        """Whether there was something to forget."""
        node = self._tree.find(filter)
        if node is None or node.held is None or key not in node.held:
            return False
        del node.held[key]
        self._count -= 1
        if not node.held:
            self._tree.clear(filter)
        return True

    def match(self, topic: str) -> list[tuple[TreeKey, TreeValue]]:
        """Key and value of every filter that matches, so maybe several of a key."""
        levels = topic.split("/")
        found: list[tuple[TreeKey, TreeValue]] = []
        steps = 0
        stack = [(self._tree.root, 0)]
        while stack:
            node, at = stack.pop()
            if at == len(levels) and node.held is not None:
                found += node.held.items()
            for key in _keys(levels, at):
                child = node.children.get(key)
                if child is not None:
                    reached = _reach(child.edge, levels, at)
                    if reached:
                        stack.append((child, reached))
            steps += 1
        self.steps += steps
        return found


class TopicTree:
    """Topic names, found by a filter; looks only where the filter leads."""

    def __init__(self) -> None:
        self._tree: _Tree[str] = _Tree()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, topic: str) -> None:
        """Know ``topic``; does nothing if it is known."""
        node = self._tree.place(topic)
        self._count += node.held is None
        node.held = topic

    def remove(self, topic: str) -> None:
        """Forget ``topic``; does nothing if it is not known."""
        node = self._tree.find(topic)
        if node is not None and node.held is not None:
            self._tree.clear(topic)
            self._count -= 1

    def match(self, filter: str) -> Iterator[str]:
        """The names that ``filter`` matches; do not change the tree meanwhile."""
        wanted = filter.split("/")
        stack = [(self._tree.root, 0)]
        while stack:
            node, at = stack.pop()
            if node.held is not None and at in (_ALL, len(wanted)):
                yield node.held
            if at == _ALL:
                stack += [(child, _ALL) for child in node.children.values()]
                continue
            for child in _among(node, wanted, at):
                reached = _lead(wanted, at, child.edge)
                if reached:
                    stack.append((child, reached))


class _FilterNode(Generic[Held]):
    __slots__ = ("children", "edge", "held")

    def __init__(self, edge: tuple[str, ...]) -> None:
        self.edge = edge
        self.children: dict[str, _FilterNode[Held]] = {}
        self.held: Held | None = None


class _Tree(Generic[Held]):
    """The nodes, and how they part and join."""

    def __init__(self) -> None:
        self.root: _FilterNode[Held] = _FilterNode(())

    def find(self, text: str) -> _FilterNode[Held] | None:
        """The node of exactly this text."""
        path = self._path(text.split("/"))
        return path[-1] if path else None

    def place(self, text: str) -> _FilterNode[Held]:
        """The node of exactly this text, made if need be; it must get something."""
        levels = tuple(text.split("/"))
        node, at = self.root, 0
        while at < len(levels):
            child = node.children.get(levels[at])
            if child is None:
                child = node.children[levels[at]] = _FilterNode(levels[at:])
                return child
            common = _common(child.edge, levels, at)
            if common < len(child.edge):
                child = self._part(node, child, common)
            node, at = child, at + common
        return node

    def clear(self, text: str) -> None:
        """Let the node of this text hold nothing any more; it must exist."""
        path = self._path(text.split("/"))
        node = path.pop()
        node.held = None
        if not node.children:
            parent = path.pop()
            del parent.children[node.edge[0]]
            node = parent
        if path and node.held is None and len(node.children) == 1:
            self._join(path[-1], node)

    def _path(self, levels: list[str]) -> list[_FilterNode[Held]]:
        """The nodes on the way to exactly these levels; empty if there is none."""
        node, at = self.root, 0
        path = [node]
        while at < len(levels):
            child = node.children.get(levels[at])
            if child is None or _common(child.edge, levels, at) < len(child.edge):
                return []
            path.append(child)
            node, at = child, at + len(child.edge)
        return path

    def _part(
        self, parent: _FilterNode[Held], child: _FilterNode[Held], at: int
    ) -> _FilterNode[Held]:
        """A new node between the two, for the first ``at`` levels of the edge."""
        between: _FilterNode[Held] = _FilterNode(child.edge[:at])
        parent.children[child.edge[0]] = between
        child.edge = child.edge[at:]
        between.children[child.edge[0]] = child
        return between

    def _join(self, parent: _FilterNode[Held], node: _FilterNode[Held]) -> None:
        """Take ``node`` away between its parent and its only child."""
        (child,) = node.children.values()
        child.edge = node.edge + child.edge
        parent.children[child.edge[0]] = child


def _keys(levels: list[str], at: int) -> tuple[str, ...]:
    """What filters may have at the place ``at`` of a name."""
    if at == len(levels):
        return ("#",)
    level = levels[at]
    if level in ("+", "#"):
        # Names may have such levels if they did not come by MQTT.
        return ("+", "#")
    # MQTT-4.7.2-1
    return (level,) if not at and level.startswith("$") else (level, "+", "#")


def _reach(edge: tuple[str, ...], levels: list[str], at: int) -> int:
    """Where in a name an edge of filters ends, if it fits there; otherwise 0."""
    # Most have one level, by which they were found.
    if len(edge) == 1 and edge[0] != "#":
        return at + 1
    for wanted in edge:
        if wanted == "#":
            return len(levels)
        if at == len(levels) or wanted not in ("+", levels[at]):
            return 0
        at += 1
    return at


def _among(
    node: _FilterNode[Held], wanted: list[str], at: int
) -> Iterable[_FilterNode[Held]]:
    """The children that a filter may lead to."""
    if at == len(wanted):
        return ()
    if wanted[at] not in ("+", "#"):
        child = node.children.get(wanted[at])
        return () if child is None else (child,)
    if at:
        return node.children.values()
    # MQTT-4.7.2-1
    return (c for c in node.children.values() if not c.edge[0].startswith("$"))


def _lead(wanted: list[str], at: int, edge: tuple[str, ...]) -> int:
    """Where in a filter an edge of names ends, or ``_ALL``; 0 if it does not fit."""
    for level in edge:
        if at == len(wanted):
            return 0
        if wanted[at] == "#":
            return _ALL
        if wanted[at] not in ("+", level):
            return 0
        at += 1
    return _ALL if at < len(wanted) and wanted[at] == "#" else at


def _common(edge: tuple[str, ...], levels: Sequence[str], at: int) -> int:
    """How many levels are the same."""
    for index, level in enumerate(edge):
        if at + index == len(levels) or level != levels[at + index]:
            return index
    return len(edge)
