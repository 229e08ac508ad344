"""What a user would ask, one line each: Penstock beside the best peer of its kind.

Like is held against like: who has events on disk before they are confirmed against
others who have, who leaves that to the system against others who do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.embedded import field as embedded
from bench.peers import mqtt, programs, quiet
from bench.peers.field import (
    CONTENDERS,
    EACH,
    FAN_ACKS,
    FAN_NONE,
    FEW,
    OS,
    PUBLISH,
    SINGLE,
    SYNC,
    THROUGH,
    TOPICS,
    TOPICS_100,
)
from bench.peers.rows import Results
from bench.peers.targets import NO_PEERS
from bench.rounds import Sample


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How a sample is told of, and which of two is the better."""

    value: Callable[[Sample], float]
    words: Callable[[float], str]
    less_is_better: bool = False
    # Whether the CPU of an event belongs to it.
    has_cpu: bool = True

    def times(self, ours: Sample, theirs: Sample) -> float:
        """How many times as good ours is."""
        one, other = self.value(ours), self.value(theirs)
        return other / one if self.less_is_better else one / other


@dataclass(frozen=True, kw_only=True)
class Question:
    words: str
    workload: str
    case: str
    ours: str
    # Whether a contender is a peer to be held against.
    peer: Callable[[str], bool]
    measure: Measure


@dataclass(frozen=True, kw_only=True)
class Line:
    """The answer to one question."""

    heading: str
    words: str
    ours: str
    peer: str
    theirs: str
    times: float
    our_cpu_us: float | None
    their_cpu_us: float | None


def shortened(number: float) -> str:
    """Three digits that count: 289 k, 1.25 M."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}" if number < 1000 * size else "many"
    return f"{number:.3g}"


RATE = Measure(
    value=lambda sample: sample.events_per_s, words=lambda n: f"{shortened(n)}/s"
)
MEDIAN = Measure(
    value=lambda sample: sample.facts["p50_us"],
    words=lambda n: f"{n:.0f} µs",
    less_is_better=True,
)
MEMORY = Measure(
    value=lambda sample: sample.facts["bytes_each"],
    words=lambda n: f"{n / 1024:.2f} KiB",
    less_is_better=True,
    has_cpu=False,
)
START = Measure(
    value=lambda sample: sample.facts["start_s"],
    words=lambda n: f"{n:.2f} s",
    less_is_better=True,
    has_cpu=False,
)


def _synced(name: str) -> bool:
    return CONTENDERS[name].system not in NO_PEERS and CONTENDERS[name].synced


def _unsynced(name: str) -> bool:
    return CONTENDERS[name].system not in NO_PEERS and not CONTENDERS[name].synced


def _either(name: str) -> bool:
    return CONTENDERS[name].system not in NO_PEERS


def _program(name: str) -> bool:
    return embedded.PUBLISH.contenders[name].system != embedded.PENSTOCK


def _device(name: str) -> bool:
    return name != mqtt.OURS


def _asked(
    words: str, workload: str, case: str = "100 B", measure: Measure = RATE
) -> Question:
    return Question(
        words=words,
        workload=workload,
        case=case,
        ours=SYNC,
        peer=_synced,
        measure=measure,
    )


def _lazy(words: str, workload: str, case: str) -> Question:
    return Question(
        words=words,
        workload=workload,
        case=case,
        ours=OS,
        peer=_unsynced,
        measure=RATE,
    )


def _many(words: str, workload: str) -> Question:
    return Question(
        words=words,
        workload=workload,
        case="100 B",
        ours=SYNC,
        peer=_either,
        measure=RATE,
    )


def _of_devices(words: str, title: str, case: str, measure: Measure) -> Question:
    return Question(
        words=words,
        workload=f"{mqtt.NAME} {title}",
        case=case,
        ours=mqtt.OURS,
        peer=_device,
        measure=measure,
    )


ON_DISK = "on disk before it is confirmed"
IN_CACHE = "confirmed when the system has it, on disk a little later"
READERS = "1 000 readers of one topic, 100 B, deliveries"
DEVICES = "MQTT, 100 B; Penstock writes every message to disk, no peer does"
QUESTIONS: Mapping[str, Sequence[Question]] = {
    ON_DISK: (
        _asked("publish one at a time, 100 B", SINGLE, measure=MEDIAN),
        _asked("publish one at a time, 1 KiB", SINGLE, "1 KiB", MEDIAN),
        _asked("publish, 256 in flight, 100 B", FEW),
        _asked("publish, 256 in flight, 1 KiB", FEW, "1 KiB"),
        _asked("publish, 4 000 in flight, 100 B", PUBLISH),
        _asked("publish, 4 000 in flight, 1 KiB", PUBLISH, "1 KiB"),
        _asked("4 000 in flight into 100 topics, 100 B", TOPICS_100),
        _asked("4 000 in flight into 1 000 topics, 100 B", TOPICS),
        _asked("1 000 topics, a subscriber each, acked", EACH),
        _asked("publish, deliver, acknowledge, 100 B", THROUGH),
        _asked("publish, deliver, acknowledge, 1 KiB", THROUGH, "1 KiB"),
        Question(
            words="64 publishers in one Python program",
            workload=programs.WORKLOAD,
            case=programs.CASE,
            ours=embedded.SERVED,
            peer=_program,
            measure=RATE,
        ),
        _asked("quiet topics, made", quiet.GROUP, measure=RATE),
        _asked("quiet topics, memory each", quiet.GROUP, measure=MEMORY),
        _asked("quiet topics, time to start with them", quiet.GROUP, measure=START),
    ),
    IN_CACHE: (
        _lazy("publish, 4 000 in flight, 100 B", PUBLISH, "100 B"),
        _lazy("publish, 4 000 in flight, 1 KiB", PUBLISH, "1 KiB"),
        _lazy("publish, deliver, acknowledge, 100 B", THROUGH, "100 B"),
        _lazy("publish, deliver, acknowledge, 1 KiB", THROUGH, "1 KiB"),
    ),
    READERS: (
        _many("all of them acknowledge", FAN_ACKS),
        _many("none of them acknowledges", FAN_NONE),
    ),
    DEVICES: (
        _of_devices("one to one, QoS 0", "1 to 1", "QoS 0, 100 B", RATE),
        _of_devices("one to one, QoS 1", "1 to 1", "QoS 1, 100 B", RATE),
        _of_devices("one to 1 000, QoS 0", "1 to 1 000", "QoS 0, 100 B", RATE),
        _of_devices("1 000 to one, QoS 1", "1 000 to 1", "QoS 1, 100 B", RATE),
        _of_devices("100 connections, QoS 0", mqtt.ALONE_100, "QoS 0, 100 B", RATE),
        _of_devices("100 connections, QoS 1", mqtt.ALONE_100, "QoS 1, 100 B", RATE),
        _of_devices(
            "one message there and back, QoS 0", mqtt.ALONE_1, "QoS 0, 100 B", MEDIAN
        ),
    ),
}


def lines(results: Results) -> list[Line]:
    """The answers that can be given, in the order of the questions."""
    return [
        line
        for heading, questions in QUESTIONS.items()
        for question in questions
        if (line := _answer(heading, question, results)) is not None
    ]


def _answer(heading: str, question: Question, results: Results) -> Line | None:
    samples = results.get((question.workload, question.case), {})
    peers = {name: one for name, one in samples.items() if question.peer(name)}
    ours = samples.get(question.ours)
    if ours is None or not peers:
        return None
    measure = question.measure
    # The best is the one beside which Penstock looks worst.
    best = min(peers, key=lambda name: measure.times(ours, peers[name]))
    theirs = peers[best]
    return Line(
        heading=heading,
        words=question.words,
        ours=measure.words(measure.value(ours)),
        peer=best,
        theirs=measure.words(measure.value(theirs)),
        times=measure.times(ours, theirs),
        our_cpu_us=ours.cpu_s_per_million if measure.has_cpu else None,
        their_cpu_us=theirs.cpu_s_per_million if measure.has_cpu else None,
    )
