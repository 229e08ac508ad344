"""A broker is killed under load at random moments; every promise it made holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings

from penstock.log.verify import verify
from tests.process.broker_load import Load, ask
from tests.process.broker_record import Record, Stored, Told, Truth, check_priorities
from tests.process.json_clients import JsonConsumer, JsonPublisher
from tests.process.line_clients import LineConsumer, LinePublisher
from tests.process.native_clients import NativeConsumer, NativePublisher
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

DEEP = settings.get_current_profile_name() == "deep"
KILLS = 50 if DEEP else 10
SEED = Random().getrandbits(32) if DEEP else 20
BACKLOG = 800
# Stands between what came before a kill and what came after it.
KILLED = "$killed"
TOPICS = ["orders", "bøxes/2"]
# Small files, so that a second of work rolls, writes out and checkpoints many times.
CONFIG = """
[log]
journal_file_bytes = 200_000
checkpoint_bytes = 100_000
write_out_bytes = 20_000
tail_cache_bytes = 20_000
[topics]
segment_bytes = 50_000
[broker]
page_cache_bytes = "1MiB"
"""

Publisher = LinePublisher | JsonPublisher | NativePublisher
Consumer = LineConsumer | JsonConsumer | NativeConsumer


class Scene:
    """Clients of every kind on two topics."""

    def __init__(self, random: Random) -> None:
        self.record = record = Record()
        orders, boxes = TOPICS
        self.publishers: list[Publisher] = [
            LinePublisher("lena", [orders], record, random),
            LinePublisher("luis", [orders, boxes], record, random),
            JsonPublisher("jana", boxes, record, random),
            JsonPublisher("jens", boxes, record, random),
            NativePublisher("nora", orders, record, random),
        ]
        self.one_by_one = LineConsumer("ole", TOPICS, record, random, drop_rate=0.01)
        self.consumers: list[Consumer] = [
            self.one_by_one,
            LineConsumer("mia", [orders], record, random, window=20, drop_rate=0.01),
            JsonConsumer("kim", orders, record),
            JsonConsumer("kai", boxes, record),
            NativeConsumer("nils", boxes, record, window=30),
        ]
        self.clients: list[Publisher | Consumer] = [*self.consumers, *self.publishers]

    def check(self, truth: Truth) -> None:
        for client in self.clients:
            client.check(truth)

    def check_all(self, truth: Truth, starts: dict[str, int]) -> None:
        for publisher in self.publishers:
            publisher.check(truth)
        for consumer in self.consumers:
            consumer.check_all(truth, starts)
        for topic, steps in self.one_by_one.steps.items():
            known = self.record.known[topic]
            check_priorities(steps, truth.topics[topic], known)

    def drained(self, text: str) -> bool:
        """Whether all consumers have finished the event of that text, and all else."""
        return all(
            one.idle and set(one.last_text.values()) == {text} for one in self.consumers
        )


def test_every_promise_outlives_kills_under_load(tmp_path: Path) -> None:
    random = Random(SEED)
    scene = Scene(random)
    with serving_small_files(tmp_path) as server:
        publish_to_all(server, "first")
        load = Load(scene.clients, server.ports)
        load.run(lambda: all(one.subscribed for one in scene.consumers))
        scene.record.open = True
        truth = None
        for number in range(KILLS):
            with noted(f"seed {SEED}, kill {number}"):
                work(load, random, random.choice([1, 20, 200, 600, 1200]))
                restart(server, load)
                truth = looked_at(server, scene, truth)
        with noted(f"seed {SEED}, after the last kill"):
            finish(server, load, scene)
            nothing_comes_again(server, load, scene)
            load.close()
            assert server.stop() == 0
            truth = looked_at(server, scene, truth)
            scene.check_all(truth, dict.fromkeys(TOPICS, 1))
            assert not verify(server.data).damages


def test_a_backlog_is_delivered_by_priority_over_kills(tmp_path: Path) -> None:
    random = Random(SEED)
    topic, record = TOPICS[0], Record(max_lag=BACKLOG)
    consumers = [
        LineConsumer("ole", [topic], record, random),
        LineConsumer("mia", [topic], record, random, window=50),
    ]
    with noted(f"seed {SEED}"), serving_small_files(tmp_path) as server:
        publish_to_all(server, "first")
        load = Load(consumers, server.ports)
        load.run(lambda: all(one.subscribed for one in consumers))
        load.close()
        publish_backlog(server, LinePublisher("lena", [topic], record, random), record)
        ranked = by_priority(Truth(server.data), topic)

        load = Load(consumers, server.ports)
        for end in sorted(random.sample(range(len(ranked)), 3)):
            load.run(partial(acked_more_than, consumers[0], topic, end))
            restart(server, load)
            for one in consumers:
                one.order[topic].append(KILLED)
        last = ranked[-1]
        load.run(lambda: all(last in one.acked[topic] for one in consumers))
        load.close()

    for one in consumers:
        order = one.order[topic]
        assert list(dict.fromkeys(id_ for id_ in order if id_ != KILLED)) == ranked
        for part in between_kills(order):
            assert part == sorted(part, key=ranked.index), one.name


@pytest.mark.parametrize(
    ("known", "got", "fits"),
    [(2, "high", True), (2, "low", False), (1, "low", True), (2, "later", False)],
)
def test_the_check_of_priorities_sees_what_is_wrong(
    known: int, got: str, *, fits: bool
) -> None:
    events = [
        Stored(0, "low", 0, "low"),
        Stored(1, "high", 7, "high"),
        Stored(2, "later", 7, "later"),
    ]
    steps = [Told("asked", known=known), Told("got", got)]

    with nullcontext() if fits else pytest.raises(AssertionError, match="waited"):
        check_priorities(steps, events, ["low", "high"])


def acked_more_than(consumer: LineConsumer, topic: str, count: int) -> bool:
    return len(consumer.acked[topic]) > count


def publish_backlog(server: Serving, publisher: LinePublisher, record: Record) -> None:
    """Publish while nobody consumes, and kill the server behind it."""
    record.open = True
    load = Load([publisher], server.ports)
    load.run(lambda: len(publisher.confirmed) >= BACKLOG)
    restart(server, load)
    load.close()


def by_priority(truth: Truth, topic: str) -> list[str]:
    """The ids of a backlog in the order of their delivery."""
    events = truth.topics[topic][1:]
    return [
        one.id for one in sorted(events, key=lambda one: (-one.priority, one.offset))
    ]


def between_kills(order: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for id_ in order:
        if id_ == KILLED:
            parts.append([])
        else:
            parts[-1].append(id_)
    return parts


@contextmanager
def serving_small_files(directory: Path) -> Iterator[Serving]:
    config = directory / "penstock.toml"
    config.write_text(CONFIG)
    with serving(directory, "--no-maze", "--config", str(config)) as server:
        yield server


def work(load: Load, random: Random, facts: int) -> None:
    """Let so many promises be made; some connections are torn down meanwhile."""
    end = load.facts + facts
    while load.facts < end:
        some = min(load.facts + random.randint(20, 200), end)
        load.run(reached(load, some))
        if load.facts < end:
            load.tear(random.choice(load.clients))


def reached(load: Load, facts: int) -> Callable[[], bool]:
    return lambda: load.facts >= facts


def restart(server: Serving, load: Load) -> None:
    server.kill()
    load.hear_out()
    server.start()
    load.ports = server.ports


def looked_at(server: Serving, scene: Scene, before: Truth | None) -> Truth:
    truth = Truth(server.data)
    truth.check(before)
    scene.check(truth)
    return truth


def finish(server: Serving, load: Load, scene: Scene) -> None:
    """Let publishers end what they began, and consumers get all of it."""
    scene.record.open = False
    load.run(lambda: all(one.idle for one in scene.publishers))
    publish_to_all(server, "last")
    load.run(lambda: scene.drained("last"))


def nothing_comes_again(server: Serving, load: Load, scene: Scene) -> None:
    """What was settled stays settled over one more kill: only news is delivered."""
    for one in lines(scene):
        one.drop_rate = 0.0
    orders = [list(ids) for one in lines(scene) for ids in one.order.values()]
    restart(server, load)
    publish_to_all(server, "news")
    load.run(lambda: scene.drained("news"))

    later = [ids for one in lines(scene) for ids in one.order.values()]
    assert [[*ids, "news"] for ids in orders] == later


def lines(scene: Scene) -> list[LineConsumer]:
    return [one for one in scene.consumers if isinstance(one, LineConsumer)]


def publish_to_all(server: Serving, text: str) -> None:
    """Publish an event to every topic that all others go before."""
    event = f'{{"id":"{text}","msg":"{text}"}}'
    pubs = [f"pub {topic} {event}" for topic in TOPICS]
    answers = ask(server.ports["line"], ["confirm on", *pubs], 1 + len(pubs))
    assert [answer.split()[0] for answer in answers[1:]] == ["published"] * len(pubs)


@contextmanager
def noted(text: str) -> Iterator[None]:
    """Have a failure say where it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(text)
        raise
