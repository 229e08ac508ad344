"""Where commands read from: a topic of a data directory, a part of it at a time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.errors import OffsetOutOfRange, UnknownTopic
from penstock.log import Batch, Reader, StoredTopic

# Names listed when the topic asked for does not exist.
MAX_SUGGESTIONS = 5


@contextmanager
def opened(directory: str) -> Iterator[Reader]:
    """A reader of the directory; damage that it had to leave out is warned of."""
    with Reader.open(directory) as reader:
        yield reader
        for damage in reader.damages:
            say(f"warning: left out: {damage}", err=True)


def topic_of(reader: Reader, name: str) -> StoredTopic:
    """The topic, or a refusal that lists names like the one asked for."""
    try:
        return reader.topic(name)
    except UnknownTopic as error:
        raise Refusal(str(error), _suggestion(name, reader.topics())) from error


def batches_of(
    reader: Reader, topic: StoredTopic, start: int | None, stop: int | None
) -> Iterator[Batch]:
    """Batches of the offsets from ``start`` up to ``stop``, in bounded memory.

    Raises OffsetOutOfRange at once if ``start`` is none of the topic's.
    """
    first = topic.start_offset if start is None else start
    end = topic.end_offset if stop is None else min(stop, topic.end_offset)
    if not topic.start_offset <= first <= topic.end_offset:
        raise OffsetOutOfRange(topic.name, first, topic.start_offset, topic.end_offset)
    return _read(reader, topic.name, first, end)


def _read(reader: Reader, name: str, offset: int, end: int) -> Iterator[Batch]:
    while offset < end:
        found = reader.read(name, offset)
        if not found:
            return  # the rest is damaged
        for batch in found:
            part = batch.before(end)
            if len(part):
                yield part
        offset = found[-1].end_offset


def _suggestion(name: str, known: list[str]) -> str:
    if not known:
        return "this data directory has no topics"
    near = difflib.get_close_matches(name, known, MAX_SUGGESTIONS, 0.5)
    near += [other for other in known if name in other and other not in near]
    if near:
        return f"did you mean {', '.join(near[:MAX_SUGGESTIONS])}?"
    more = ", …" if len(known) > MAX_SUGGESTIONS else ""
    return f"its topics are {', '.join(known[:MAX_SUGGESTIONS])}{more}"
