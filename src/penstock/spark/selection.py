"""Which topics a query reads, and what there is of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.errors import DataLost, InvalidOption, UnknownTopic
from penstock.spark.offsets import Bound
from penstock.spark.options import SourceOptions, TopicSelection
from penstock.table.extent import Extent
from penstock.table.place import Place


def selected(place: Place, topics: TopicSelection) -> dict[str, Extent]:
    """The topics of these names that there are, or all whose names fit the pattern.

    A pattern finds none of Penstock's own, which begin with ``$``: name them.
    """
    if topics.pattern is None:
        return place.extents(topics.names)
    fits = re.compile(topics.pattern).fullmatch
    return {name: one for name, one in place.extents().items() if fits(name)}


def is_selected(topic: str, topics: TopicSelection) -> bool:
    """Whether a topic would be read, if it were there."""
    if topics.pattern is None:
        return topic in topics.names
    fits = re.fullmatch(topics.pattern, topic) is not None
    return fits and not topic.startswith("$")


def present(place: Place, options: SourceOptions) -> dict[str, Extent]:
    """The topics to begin with; raises UnknownTopic for one that is named in vain."""
    extents = selected(place, options.topics)
    missing = [name for name in options.topics.names if name not in extents]
    if missing and options.fail_on_data_loss:
        raise UnknownTopic(missing[0])
    return extents


def placed(
    place: Place,
    bound: Bound,
    extents: Mapping[str, Extent],
    *,
    fail_on_data_loss: bool,
) -> dict[str, int]:
    """The offset of each topic that a bound means; raises DataLost outside of it."""
    strays = sorted(bound.topics - extents.keys())
    if strays and fail_on_data_loss:
        raise InvalidOption(bound.option, strays[0], "of topics that are read")
    offsets = {}
    for topic, extent in extents.items():
        offset = bound.resolve(topic, extent, place.offset_at)
        if fail_on_data_loss and not extent.start <= offset <= extent.end:
            there = f"it has {extent.start} to {extent.end}"
            raise DataLost(topic, f"{bound.option} is {offset}, {there}")
        offsets[topic] = min(max(offset, extent.start), extent.end)
    return offsets
