"""What the desk tells of MQTT sessions."""

from __future__ import annotations

from typing import Literal

from penstock.desk.views import View

SessionState = Literal["connected", "away"]


class FilterRow(View, frozen=True, kw_only=True):
    """A filter that a client has subscribed to; ``identifier`` 0: it gave none."""

    filter: str
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int


class MqttSessionRow(View, frozen=True, kw_only=True):
    """A session; ``since_ms`` is when its client came, or went.

    ``expiry_s`` is how long it is kept without a connection, None for ever, and
    ``expires_in_s`` what is left of it. A session that is not ``durable`` is lost with
    the process. ``filters`` are the first of ``filters_count``. Packets in flight wait
    for an answer of the client (``out``), or for its PUBREL (``in``). ``lag`` is how
    many events it has not settled, in ``owed_topics``; those that it shares with others
    are left out.
    """

    client: str
    user: str
    state: SessionState
    since_ms: int | None
    expiry_s: float | None
    expires_in_s: float | None
    durable: bool
    filters: list[FilterRow]
    filters_count: int
    in_flight_out: int
    in_flight_in: int
    owed_topics: int
    lag: int


class MqttSessionPage(View, frozen=True, kw_only=True):
    sessions: list[MqttSessionRow]
    more: bool


class OwedTopicRow(View, frozen=True, kw_only=True):
    """What a session is owed of a topic; ``group``: it shares that with others."""

    topic: str
    group: str | None
    in_flight: int
    lag: int


class WillRow(View, frozen=True, kw_only=True):
    """A last message; ``due_ms``: when it is published if the client stays away."""

    topic: str
    bytes: int
    qos: int
    retain: bool
    delay_s: float
    due_ms: int | None


class MqttSessionView(MqttSessionRow, frozen=True, kw_only=True):
    """A session with its topics, those with the most lag first."""

    topics: list[OwedTopicRow]
    more_topics: bool
    will: WillRow | None
