"""A stream of server-sent events, cut into events: in batches and within bounds.

    data: first line       lines end with CR, LF or CRLF; an empty one ends the event
    data: second line      data lines are joined by LF; one space after ":" is dropped
    id: 41                 stays for later events that have none; not with a NUL in it
    event: message         the type; "message" unless something else is said
    retry: 3000            how long to wait before connecting again; digits only
    : a comment            as any field that is not known, it means nothing

An event without data is none, but its id counts. One byte order mark at the beginning
is skipped, and what is not ended when the stream ends is no event (WHATWG HTML 9.2.5,
9.2.6). Two things differ from the standard: data are the bytes as they came, not text
in which bytes that are not UTF-8 were replaced; and sizes have bounds. Of data beyond
``max_bytes`` the beginning is kept, and ``size`` tells; other fields longer than
MAX_FIELD_BYTES are ignored.

Bytes are looked at in blocks: up to the last empty line there are whole events, the
rest is held until more comes. What is held is at most one event; when that grows beyond
the bounds its lines are taken in one by one, so that it can be forgotten.
"""

from __future__ import annotations

import re
from itertools import repeat
from typing import Final, NamedTuple

MESSAGE: Final = "message"
# Ids are sent back in a header, for which servers have 8 KiB or so.
MAX_FIELD_BYTES: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_ID: Final = b"id: "
_TYPE: Final = b"event: message"
# Longer numbers may be beyond the bounds of a field.
_NUMBERS: Final = re.compile(rb"[0-9]{1,20}(?:\n[0-9]{1,20})*")


class ServerSentEvent(NamedTuple):
    """``id`` is the last one that was seen; ``size`` is of the data, also if cut."""

    data: bytes
    id: str = ""
    type: str = MESSAGE
    size: int = 0

    @property
    def is_cut(self) -> bool:
        return self.size > len(self.data)


class SseParser:
    """``feed`` bytes as they come, get the events that they completed.

    A parser is good for one connection. The next one is given ``last_event_id``.
    """

    def __init__(self, max_bytes: int, last_event_id: str = "") -> None:
        self.max_bytes = max_bytes
        self.last_event_id = last_event_id
        self.retry_ms: int | None = None
        # Of a longer line this much tells that its value is too long.
        self._max_line_bytes = max(max_bytes, MAX_FIELD_BYTES) + 8
        self._begun = False
        self._after_cr = False
        self._held = bytearray()
        """Lines that are not taken in yet, or the end of the one before, and so on."""
        self._cut_bytes = 0
        """Left out of the line that is held, which is too long."""
        # Of the event under way, as far as its lines were taken in.
        self._id = last_event_id
        self._type = ""
        self._data: bytearray | None = None
        self._size = 0

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that ``data`` completed; never raises."""
        if not self._begun:
            data = self._begin(data)
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._cut_bytes:
            data = self._skip(data)
        return self._take(data) if data else []

    @property
    def held_bytes(self) -> int:
        """What is kept of an event that is not complete."""
        return len(self._held) + len(self._data or b"")

    def _begin(self, data: bytes) -> bytes:
        """Wait until it is known whether there is a byte order mark, and skip it."""
        data = bytes(self._held) + data
        self._held.clear()
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._held += data
            return b""
        self._begun = True
        return data.removeprefix(_BOM)

    def _take(self, data: bytes) -> list[ServerSentEvent]:
        held = self._held
        if held:
            start = len(held) - 1
            held += data
            end = held.rfind(b"\n\n", start)
            block = bytes(held[:end]) if end >= 0 else None
            del held[: end + 2 if end >= 0 else 0]
        else:
            end = data.rfind(b"\n\n")
            block = data[:end] if end >= 0 else None
            held += data[end + 2 :] if end >= 0 else data
        events = [] if block is None else self._events(block)
        if len(held) > self._max_line_bytes:
            self._shrink()
        return events

    def _events(self, block: bytes) -> list[ServerSentEvent]:
        """The events of whole ones; an empty line in front of one means nothing."""
        # What was taken in already may be of the first one.
        if self._data is None and not self._type:
            events = self._numbered(block.split(b"\n"))
            if events is not None:
                return events
        events = []
        for lines in block.split(b"\n\n"):
            for line in lines.split(b"\n"):
                self._line(line)
            if (event := self._dispatch()) is not None:
                events.append(event)
        return events

    def _numbered(self, lines: list[bytes]) -> list[ServerSentEvent] | None:
        """The events, if each has a number and one line of data, as most streams have.

        Looked at by column: what an event costs one by one is several times as much.
        """
        typed = lines[0] == _TYPE
        step = 4 if typed else 3
        lines.append(b"")  # of the last event
        count, rest = divmod(len(lines), step)
        if rest or lines[step - 1 :: step].count(b"") < count:
            return None
        if typed and lines[::step].count(_TYPE) < count:
            return None
        numbers = _without(_ID, lines[step - 3 :: step])
        texts = _without(_DATA, lines[step - 2 :: step])
        if not numbers or not texts or not _NUMBERS.fullmatch(b"\n".join(numbers)):
            return None
        sizes = list(map(len, texts))
        if max(sizes) > self.max_bytes:
            return None
        ids = b"\n".join(numbers).decode().split("\n")
        self._id = self.last_event_id = ids[-1]
        return list(map(ServerSentEvent, texts, ids, repeat(MESSAGE), sizes))

    def _line(self, line: bytes, cut_bytes: int = 0) -> None:
        if line.startswith(_DATA):
            self._add(line[len(_DATA) :], cut_bytes)
            return
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._add(value, cut_bytes)
        elif len(value) > MAX_FIELD_BYTES:
            pass
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode(errors="replace")
        elif name == b"event":
            self._type = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit():
            self.retry_ms = int(value)

    def _add(self, value: bytes, cut_bytes: int) -> None:
        if self._data is None:
            self._data = bytearray(value)
            self._size = len(value) + cut_bytes
        else:
            self._data += b"\n"
            self._data += value
            self._size += 1 + len(value) + cut_bytes
        if len(self._data) > self.max_bytes:
            del self._data[self.max_bytes :]

    def _dispatch(self) -> ServerSentEvent | None:
        self.last_event_id = self._id
        kind, self._type = self._type, ""
        data, self._data = self._data, None
        if data is None:
            return None
        return ServerSentEvent(bytes(data), self._id, kind or MESSAGE, self._size)

    def _shrink(self) -> None:
        """Take in the lines that are complete, and cut the one that is not."""
        held = self._held
        end = held.rfind(b"\n")
        for line in held[: max(end, 0)].split(b"\n"):
            self._line(bytes(line))
        # Its end stays: with another one it makes an empty line.
        del held[: max(end, 0)]
        if len(held) > self._max_line_bytes:
            self._cut_bytes = len(held) - self._max_line_bytes
            del held[self._max_line_bytes :]

    def _skip(self, data: bytes) -> bytes:
        """Leave out the rest of a line that is too long, and take the line in."""
        end = data.find(b"\n")
        if end < 0:
            self._cut_bytes += len(data)
            return b""
        line = bytes(self._held).removeprefix(b"\n")
        self._line(line, self._cut_bytes + end)
        self._held.clear()
        self._cut_bytes = 0
        return data[end:]


def _without(head: bytes, lines: list[bytes]) -> list[bytes] | None:
    """The lines without what they begin with; None if not all do."""
    length = len(head)
    if [line[:length] for line in lines].count(head) < len(lines):
        return None
    return [line[length:] for line in lines]
