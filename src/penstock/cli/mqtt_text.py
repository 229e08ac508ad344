"""Sessions of MQTT and retained messages as people read them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.cli import show
from penstock.desk.views.retained import RetainedRow, RetainedView
from penstock.desk.views.sessions import (
    FilterRow,
    MqttSessionRow,
    MqttSessionView,
    WillRow,
)

# Filters of a session in a table.
SHOWN_FILTERS = 3

_SESSIONS = (
    *("CLIENT", "USER", "STATE", "SINCE", "EXPIRES", "DURABLE", "IN FLIGHT", "LAG"),
    "FILTERS (QOS)",
)
_RETAINED = ("TOPIC", "SIZE", "QOS", "PUBLISHED", "EXPIRES")


def session_table(found: list[MqttSessionRow]) -> list[str]:
    return show.table([_SESSIONS, *map(_session, found)])


def session_lines(one: MqttSessionView) -> Iterator[str]:
    """Everything about one session."""
    yield from show.table(
        [
            ("client", _text(one.client)),
            ("user", _text(one.user) or "-"),
            ("state", f"{one.state} since {_time(one.since_ms)}"),
            ("expires", _expires(one)),
            ("durable", _yes(one.durable)),
            ("in flight", _in_flight(one)),
            ("lag", _lag(one)),
            ("will", "-" if one.will is None else _will(one.will)),
        ]
    )
    if one.filters:
        yield ""
        yield from show.table(
            [("FILTER", "QOS", "OPTIONS"), *map(_filter, one.filters)]
        )
    if one.filters_count > len(one.filters):
        yield f"… {one.filters_count} in all"
    if one.topics:
        yield ""
        rows = [("TOPIC", "SHARED IN", "IN FLIGHT", "LAG")]
        rows += [
            (
                _text(row.topic),
                _text(row.group or "-"),
                str(row.in_flight),
                str(row.lag),
            )
            for row in one.topics
        ]
        yield from show.table(rows)
    if one.more_topics:
        yield "… and more topics"


def retained_table(found: list[RetainedRow]) -> list[str]:
    return show.table([_RETAINED, *map(_retained, found)])


def message_lines(one: RetainedView) -> Iterator[str]:
    """Everything about one retained message, and the beginning of its payload."""
    yield from show.table(
        [
            ("topic", _text(one.topic)),
            ("size", show.size(one.bytes)),
            ("QoS", str(one.qos)),
            ("published", show.time(one.published_ms)),
            ("expires", _moment(one.expires_ms)),
            ("producer", _text(one.producer or "-")),
            ("priority", str(one.priority)),
            *((f"header {_text(k)}", _text(v)) for k, v in one.headers.items()),
        ]
    )
    yield ""
    yield show.preview(one.payload)


def _session(one: MqttSessionRow) -> tuple[str, ...]:
    return (
        _text(one.client),
        _text(one.user) or "-",
        one.state,
        _time(one.since_ms),
        _expires(one),
        _yes(one.durable),
        _in_flight(one),
        _lag(one),
        _filters(one),
    )


def _expires(one: MqttSessionRow) -> str:
    if one.expiry_s is None:
        return "never"
    if one.expires_in_s is not None:
        return f"in {one.expires_in_s:.0f} s"
    if one.expiry_s == 0:
        return "with its connection"
    return f"{one.expiry_s:.0f} s after it goes"


def _in_flight(one: MqttSessionRow) -> str:
    return f"{one.in_flight_out} out, {one.in_flight_in} in"


def _lag(one: MqttSessionRow) -> str:
    if not one.lag:
        return "-"
    return f"{one.lag} on {show.count(one.owed_topics, 'topic')}"


def _filters(one: MqttSessionRow) -> str:
    shown = [f"{_text(row.filter)} ({row.qos})" for row in one.filters[:SHOWN_FILTERS]]
    if one.filters_count > len(shown):
        shown.append(f"… {one.filters_count} in all")
    return ", ".join(shown) or "-"


def _filter(row: FilterRow) -> tuple[str, ...]:
    options = [
        "no local" if row.no_local else "",
        "retain as published" if row.retain_as_published else "",
        f"identifier {row.identifier}" if row.identifier else "",
    ]
    return _text(row.filter), str(row.qos), ", ".join(filter(None, options)) or "-"


def _will(will: WillRow) -> str:
    words = [f"{show.size(will.bytes)} to {_text(will.topic)}", f"QoS {will.qos}"]
    words += ["retained"] if will.retain else []
    words += [f"{will.delay_s:g} s later"] if will.delay_s else []
    words += [f"due {show.time(will.due_ms)}"] if will.due_ms is not None else []
    return ", ".join(words)


def _retained(row: RetainedRow) -> tuple[str, ...]:
    return (
        _text(row.topic),
        show.size(row.bytes),
        str(row.qos),
        show.time(row.published_ms),
        _moment(row.expires_ms),
    )


def _text(name: str) -> str:
    return show.preview(name.encode())


def _time(moment_ms: int | None) -> str:
    return "-" if moment_ms is None else show.time(moment_ms)


def _moment(moment_ms: int | None) -> str:
    return "never" if moment_ms is None else show.time(moment_ms)


def _yes(said: bool) -> str:
    return "yes" if said else "no"
