"""What the desk tells of the broker at work: rates, connections, flow, processes.

Rates are events, or bytes, a second over the last seconds. Times are milliseconds since
1970.
"""

from __future__ import annotations

from typing import Literal

from penstock.desk.views import View

NodeKind = Literal["topic", "subscriber", "producer"]
EdgeKind = Literal["publish", "deliver", "cause"]


class RateRow(View, frozen=True, kw_only=True, rename={"in_": "in"}):
    """``in`` and ``out`` are events, the others bytes."""

    in_: float
    out: float
    in_bytes: float
    out_bytes: float


class TotalRow(View, frozen=True, kw_only=True, rename={"in_": "in"}):
    """Events since the broker was started."""

    in_: int
    out: int


class DiskRow(View, frozen=True, kw_only=True):
    """``used_bytes`` are segments and journal, ``free_bytes`` what the disk has left.

    None: the log is not kept in files.
    """

    used_bytes: int
    free_bytes: int | None


class SyncRow(View, frozen=True, kw_only=True):
    """How long the latest commits took to be on disk; how many there are a second."""

    p50_ms: float
    p95_ms: float
    commits_s: float


class History(View, frozen=True, kw_only=True, rename={"in_": "in"}):
    """The last minute, the newest second last. ``lag`` None: no client looked then."""

    step_s: int
    in_: list[float]
    out: list[float]
    lag: list[int | None]


class TopicFigures(View, frozen=True, kw_only=True, rename={"in_": "in"}):
    """One topic. ``spark`` are its ``in`` rates of the last seconds, newest last.

    ``lag`` is how many events its subscriptions have not settled, all together.
    """

    name: str
    events: int
    bytes: int
    in_: float
    out: float
    lag: int
    subscriptions: int
    dead_letters: int
    spark: list[float]


class Overview(View, frozen=True, kw_only=True):
    """The broker now. ``topics`` are the most active, or those that were asked for.

    ``lag`` is how many events are not settled, over all subscriptions that are not
    unsubscribed; ``unsettled`` those of them that were sent already. In a stream of
    looks one that is not ``whole`` has only the topics that have changed since.
    """

    at_ms: int
    uptime_s: float
    version: str
    rates: RateRow
    totals: TotalRow
    lag: int
    unsettled: int
    dead_letters: int
    disk: DiskRow
    sync: SyncRow
    connections: dict[str, int]
    topics_count: int
    subscriptions_count: int
    history: History
    topics: list[TopicFigures]
    more: bool
    whole: bool = True


class ShareRow(View, frozen=True, kw_only=True):
    """What a connection consumes. ``lag`` is that of the whole subscription."""

    subscriber: str
    topic: str
    window: int
    in_flight: int
    lag: int


class ConnectionRow(View, frozen=True, kw_only=True):
    """A client that is connected. ``rate``: events a second its subscriptions take."""

    number: int
    gateway: str
    peer: str
    name: str
    since_ms: int
    bytes_in: int
    bytes_out: int
    subscriptions: list[ShareRow]
    rate: float


class ConnectionPage(View, frozen=True, kw_only=True):
    connections: list[ConnectionRow]
    more: bool


class FlowNode(View, frozen=True, kw_only=True, omit_defaults=True):
    """``lag`` and ``state`` of a subscriber are those of the edges that lead to it."""

    id: str
    kind: NodeKind
    name: str
    rate: float
    lag: int | None = None
    state: str | None = None


class FlowEdge(
    View, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}
):
    """``count``: events sent so far (deliver), or seen in samples (publish, cause).

    ``types`` are those of samples that say theirs in the header ``type``.
    """

    from_: str
    to: str
    kind: EdgeKind
    rate: float
    count: int
    types: dict[str, int] | None = None


class Sampled(View, frozen=True, kw_only=True):
    """What publishers and causes were found in: the newest events of topics.

    ``events`` were looked at since a client looks at the flow, ``parents`` of them have
    one, of ``unknown`` it is not known where.
    """

    events: int
    parents: int
    unknown: int


class Flow(View, frozen=True, kw_only=True):
    """Who publishes where, who takes what, and which topics cause which.

    Publishers and causes are sampled, rates of deliveries are counted.
    """

    nodes: list[FlowNode]
    edges: list[FlowEdge]
    sampled: Sampled
    more: bool


class ProcessRow(View, frozen=True, kw_only=True):
    """``cpu`` is the share of one core; None: not known yet, or not any more."""

    name: str
    pid: int | None
    cpu: float | None
    memory_bytes: int | None
    threads: int | None
    uptime_s: float | None
    restarts: int
    state: str


class Machine(View, frozen=True, kw_only=True):
    cores: int
    memory_bytes: int


class Processes(View, frozen=True, kw_only=True):
    processes: list[ProcessRow]
    versions: dict[str, str]
    machine: Machine


class SettingRow(View, frozen=True, kw_only=True):
    """A setting as it is. ``origin``: default, file, environment or flag."""

    key: str
    value: str | int | float | bool | None
    default: str | int | float | bool | None
    origin: str
    help: str


class Config(View, frozen=True, kw_only=True):
    settings: list[SettingRow]


class StageRow(View, frozen=True, kw_only=True):
    """A part of ``penstock up``. None: it is not known, or makes no sense for it."""

    name: str
    state: str
    events: int | None = None
    rate: float | None = None
    lag: int | None = None
    restarts: int = 0
    errors: int = 0
    note: str = ""
    pid: int | None = None


class Pipeline(View, frozen=True, kw_only=True):
    """What ``penstock up`` has told last, if it runs this broker.

    ``resting``: the stream begins when a client asks for it; ``asked``: one has,
    since the broker was started. ``spark``: whether Spark and what follows are in it.
    """

    running: bool
    stages: list[StageRow]
    at_ms: int | None
    resting: bool = False
    asked: bool = False
    spark: bool = True
