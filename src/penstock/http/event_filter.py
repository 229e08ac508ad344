"""Which events of a batch are wanted: by key, by type, by what is in the payload."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.http.search import Search
from penstock.log import Batch, Column

# The header in which an event may say what it is.
TYPE = "type"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """What is left out does not matter."""

    key: bytes | None = None
    type: str | None = None
    search: Search | None = None

    def __bool__(self) -> bool:
        """Whether it keeps anything back."""
        return not (self.key is None and self.type is None and self.search is None)

    def indexes(self, batch: Batch) -> list[int]:
        """The places in the batch of the events in view that are wanted."""
        has = batch.columns()
        left = list(range(batch.lo, batch.hi))
        if self.key is not None:
            if Column.KEY not in has:
                return []
            keys = batch.keys()
            left = [index for index in left if keys[index - batch.lo] == self.key]
        if self.type is not None and left:
            if Column.HEADERS not in has:
                return []
            headers = batch.headers()
            left = [
                index
                for index in left
                if headers[index - batch.lo].get(TYPE) == self.type
            ]
        if self.search is not None and left:
            takes, payloads = self.search.takes, batch.payloads()
            left = [index for index in left if takes(payloads[index - batch.lo])]
        return left


def picked(batch: Batch, indexes: list[int]) -> list[Batch]:
    """Views of these events, neighbours together."""
    views: list[Batch] = []
    for index in indexes:
        if views and views[-1].hi == index:
            views[-1].hi = index + 1
        else:
            views.append(Batch(batch.topic, batch.body, batch.header, index, index + 1))
    return views
