"""What the comparison with peers says of what it saw; no broker is started."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.embedded import field as embedded
from bench.peers import mqtt, page, picture, programs, quiet, summary
from bench.peers.__main__ import GROUPS, PAGE
from bench.peers.field import (
    CONTENDERS,
    EACH,
    FAN_ACKS,
    NATS,
    NATS_ALWAYS,
    OS,
    PUBLISH,
    REDIS,
    REDIS_ALWAYS,
    SINGLE,
    SYNC,
    THROUGH,
    TOPICS_10,
    VALKEY,
    VALKEY_ALWAYS,
    WORKLOADS,
)
from bench.peers.rows import rows_of
from bench.peers.targets import BEST, BEST_SYNCED, CHEAPER, FASTER, NO_PEERS
from bench.rounds import Row, Sample

SMALL = "100 B"


def sample(rate: float, cpu_us: float = 1.0, **facts: float) -> Sample:
    return Sample(
        events=1000,
        bytes=100_000,
        seconds=1000 / rate,
        cpu_s=cpu_us / 1000,
        facts=facts,
    )


def rows(workload: str, **cells: dict[str, Sample]) -> dict[str, Row]:
    results = {(name, SMALL): samples for name, samples in cells.items()}
    return {row.contender: row for row in rows_of(workload, SMALL, results)}


def test_the_best_that_syncs_is_the_faster_of_redis_and_valkey() -> None:
    rates = {SYNC: 300.0, NATS_ALWAYS: 250.0, REDIS_ALWAYS: 100.0, VALKEY_ALWAYS: 200.0}
    found = rows(PUBLISH, **{PUBLISH: {n: sample(r) for n, r in rates.items()}})

    assert found[VALKEY_ALWAYS].ratio == f"{SYNC} 1.50x of it"
    assert found[VALKEY_ALWAYS].target == f"{SYNC} at least 2x"
    assert found[VALKEY_ALWAYS].met is False
    assert (found[REDIS_ALWAYS].target, found[REDIS_ALWAYS].met) == ("", None)
    assert found[NATS_ALWAYS].target == f"{SYNC} at least 50x"


def test_one_at_a_time_medians_are_held_against_each_other() -> None:
    ours, theirs = (
        sample(100, p50_us=400, p99_us=9e4),
        sample(900, p50_us=320, p99_us=1),
    )
    found = rows(SINGLE, **{SINGLE: {SYNC: ours, VALKEY_ALWAYS: theirs}})

    assert found[VALKEY_ALWAYS].ratio == f"{SYNC} 0.80x of it"
    assert found[VALKEY_ALWAYS].met is True


def test_many_topics_are_held_against_one_topic_of_the_same_contender() -> None:
    one = {SYNC: sample(9, 2.0), REDIS_ALWAYS: sample(9, 4.0)}
    ten = {SYNC: sample(9, 3.0), REDIS_ALWAYS: sample(9, 4.0)}
    found = rows(TOPICS_10, **{PUBLISH: one, TOPICS_10: ten})

    assert found[SYNC].ratio == "1.50x the CPU of one topic"
    assert (found[SYNC].target, found[SYNC].met) == ("at most 1.3x", False)
    assert found[REDIS_ALWAYS].ratio == (
        f"{SYNC} 1.00x of it; 1.00x the CPU of one topic"
    )
    assert found[REDIS_ALWAYS].met is None


def test_nothing_is_said_of_one_topic_if_it_was_not_measured() -> None:
    found = rows(EACH, **{EACH: {SYNC: sample(9)}})

    assert (found[SYNC].ratio, found[SYNC].target, found[SYNC].met) == ("", "", None)


def test_a_peer_that_does_not_sync_is_beside_topics_that_do_not() -> None:
    rates = {SYNC: 10.0, OS: 30.0, VALKEY: 20.0, REDIS: 10.0}
    found = rows(THROUGH, **{THROUGH: {n: sample(r) for n, r in rates.items()}})

    assert found[VALKEY].ratio == f"{OS} 1.50x of it"
    assert (found[REDIS].target, found[REDIS].met) == (f"{OS} at least 2.5x", True)


def test_readers_have_the_best_of_all_peers_beside_them() -> None:
    rates = {SYNC: 400_000.0, NATS: 500_000.0, REDIS: 300_000.0}
    found = rows(FAN_ACKS, **{FAN_ACKS: {n: sample(r) for n, r in rates.items()}})

    assert (found[NATS].target, found[NATS].met) == (f"{SYNC} at least 1x", False)
    assert (found[SYNC].target, found[SYNC].met) == (
        "at least 300000 deliveries/s",
        True,
    )
    assert found[REDIS].target == ""


def test_every_target_is_about_a_workload_and_a_contender() -> None:
    asked = {(one.workload, one.case, one.theirs, one.ours) for one in FASTER}

    assert len(asked) == len(FASTER)
    assert {one.workload for one in FASTER} <= set(WORKLOADS)
    assert {one.theirs for one in FASTER} <= {*CONTENDERS, BEST, BEST_SYNCED}
    assert [one.at_most for one in CHEAPER] == [1.3, 1.6, 2.0, 3.0]


@pytest.mark.parametrize(
    ("title", "qos", "size", "least"),
    [("1 000 to 1", 2, 100, "1x"), ("1 to 1", 0, 1024, "4x"), ("1 to 1", 2, 100, "5x")],
)
def test_mosquitto_shall_need_so_many_times_the_cpu(
    title: str, qos: int, size: int, least: str
) -> None:
    cell = mqtt.Cell(title=title, case="", qos=qos, size=size)
    found = mqtt.rows_of(cell, {mqtt.OURS: sample(9, 1.0), mqtt.PEER: sample(9, 4.5)})

    assert found[1].target == f"at least {least}"
    assert found[1].met is (float(least[:-1]) <= 4.5)


def test_one_message_on_each_connection_has_a_limit_of_its_own() -> None:
    title = mqtt.ALONE_100
    cell = mqtt.Cell(
        title=title, case="", qos=1, size=100, subscribers=100, shape="alone"
    )
    one = sample(9, 111.0, p50_us=1, p99_us=1)

    ours, peer = mqtt.rows_of(cell, {mqtt.OURS: one, mqtt.PEER: one})

    assert (ours.target, ours.met) == ("at most 110 µs of CPU a message", False)
    assert peer.ratio == "1.00x the CPU of Penstock" and peer.met is None


def test_programs_are_held_against_the_best_that_use_redis_py() -> None:
    rates = {"Penstock, over a URL": 30.0, "Redis always, redis-py": 9.0}
    rates |= {"Valkey always, redis-py": 10.0, "NATS JetStream always, nats-py": 99.0}

    found = programs.rows_of({name: sample(rate) for name, rate in rates.items()})

    assert [row.target for row in found] == ["", "", "Penstock at least 2x", ""]
    assert [row.met for row in found] == [None, None, True, None]


def test_quiet_topics_have_to_keep_all_of_their_promises() -> None:
    good = sample(9000, bytes_each=900.0, start_s=4.0, stop_s=1.0)
    slow = sample(4000, bytes_each=900.0, start_s=4.0, stop_s=1.0)

    [kept], [missed] = (quiet.rows_of({SYNC: one}, quick=False) for one in (good, slow))

    assert (kept.met, missed.met) == (True, False)
    assert kept.rate == "9000 topics/s, 0.88 KiB each, stops in 1.0 s, starts in 4.0 s"


RESULTS = {
    (PUBLISH, SMALL): {
        SYNC: sample(300_000, 3.0),
        OS: sample(400_000, 2.5),
        NATS: sample(900_000),
        REDIS_ALWAYS: sample(100_000, 4.0),
        VALKEY_ALWAYS: sample(150_000, 5.0),
        VALKEY: sample(800_000, 1.0),
    },
    (SINGLE, SMALL): {
        SYNC: sample(1, p50_us=600.0),
        VALKEY_ALWAYS: sample(1, p50_us=300.0),
    },
    ("MQTT 1 to 1", "QoS 0, 100 B"): {
        mqtt.OURS: sample(1_000_000),
        mqtt.PEER: sample(60_000, 16.0),
    },
    (quiet.GROUP, SMALL): {
        SYNC: sample(5000, bytes_each=512.0, start_s=2.0, stop_s=1.0),
        VALKEY_ALWAYS: sample(9000, bytes_each=1024.0, start_s=0.5, stop_s=0.0),
    },
}


def test_like_is_held_against_like() -> None:
    found = {(one.heading, one.words): one for one in summary.lines(RESULTS)}

    synced = found[summary.ON_DISK, "publish, 4 000 in flight, 100 B"]
    cached = found[summary.IN_CACHE, "publish, 4 000 in flight, 100 B"]
    single = found[summary.ON_DISK, "publish one at a time, 100 B"]
    assert (synced.ours, synced.peer, synced.theirs) == (
        "300 k/s",
        VALKEY_ALWAYS,
        "150 k/s",
    )
    assert (synced.times, synced.our_cpu_us, synced.their_cpu_us) == (2.0, 3.0, 5.0)
    assert (cached.peer, cached.ours) == (NATS, "400 k/s")
    assert (single.ours, single.times) == ("600 µs", 0.5)


def test_less_memory_is_better() -> None:
    [memory] = [one for one in summary.lines(RESULTS) if "memory" in one.words]

    assert (memory.times, memory.ours, memory.our_cpu_us) == (2.0, "0.50 KiB", None)


def test_without_peers_there_is_nothing_to_answer() -> None:
    assert summary.lines({(PUBLISH, SMALL): {SYNC: sample(1)}}) == []


def test_the_picture_has_a_bar_for_each_line_in_light_and_dark() -> None:
    lines = summary.lines(RESULTS)

    drawing = picture.draw(lines)

    root = ElementTree.fromstring(drawing)
    bars = root.findall(".//{*}rect")
    words = [text.text for text in root.findall(".//{*}text")]
    assert len(bars) == len(lines) == 7
    assert all(0 < float(bar.attrib["width"]) < picture.WIDTH for bar in bars)
    assert [bar.attrib["class"] for bar in bars] == [
        "ahead" if line.times >= 1 else "behind" for line in lines
    ]
    assert {line.peer for line in lines} <= set(words)
    assert "prefers-color-scheme: dark" in drawing


def test_words_and_peers_of_all_questions_fit_beside_the_bars() -> None:
    words = [one.words for asked in summary.QUESTIONS.values() for one in asked]
    programs_ = embedded.PUBLISH.contenders.items()
    peers = [name for name, one in CONTENDERS.items() if one.system not in NO_PEERS]
    peers += [name for name, one in programs_ if one.system != embedded.PENSTOCK]
    peers += mqtt.CONTENDERS

    assert max(map(len, words)) * 7.5 < picture.LABELS - 12
    assert max(map(len, peers)) * 6.4 < picture.PEERS - 12


def test_every_question_is_about_something_that_is_measured() -> None:
    cells = {f"{mqtt.NAME} {one.title}": one.case for one in mqtt.cells(quick=False)}
    known = {programs.WORKLOAD, quiet.GROUP, *WORKLOADS, *cells}
    asked = {one.workload for several in summary.QUESTIONS.values() for one in several}

    assert asked <= known


def test_the_summary_and_its_picture_are_written_beside_each_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Title\n\n{}\n{}\n\n## More\n".format(*page.marks("summary")))

    page.write_summary(path, {"CPU": "one"}, summary.lines(RESULTS))

    text = path.read_text()
    assert "Measured on one." in text and text.endswith("\n\n## More\n")
    assert "| publish, 4 000 in flight, 100 B | 300 k/s |" in text
    assert "| **2.00x** | 3 µs | 5 µs |" in text and "| 0.50x |" in text
    [link] = re.findall(r"!\[.+\]\((.+)\)", text)
    assert (tmp_path / link).read_text().startswith("<svg ")


def test_a_group_is_renewed_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    for name in ("publish", "topics", "publish"):
        row = Row(benchmark=name, case="", contender="", rate=f"rate of {name}")
        path.touch()
        page.write_group(path, {"CPU": "one"}, name, [row], [f"a note on {name}"])

    text = path.read_text()
    assert text.count("rate of publish") == text.count("rate of topics") == 1
    assert text.count("a note on publish") == 1


def test_the_page_has_a_place_for_everything_that_is_measured() -> None:
    text = PAGE.read_text()

    for name in ("summary", *GROUPS):
        begin, end = page.marks(name)
        assert text.count(begin) == text.count(end) == 1, name
        assert text.index(begin) < text.index(end)
