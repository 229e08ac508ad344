from __future__ import annotations

from penstock.files import Files
from penstock.log.damage import Damage
from penstock.log.layout import Layout
from penstock.log.options import TopicOptions
from penstock.log.segment_cache import SegmentCache
from penstock.log.tally import Tally, place_of
from penstock.log.topic import TopicHome, TopicLog


def test_each_place_is_damaged_once() -> None:
    tally = Tally(lambda _: None)

    tally.note(damage("a", 8, reason="first"))
    tally.note(damage("a", 8, reason="second"))
    tally.note(damage("a", 16))

    places = [(place_of(one), one.reason) for one in tally.result().damages]
    assert places == [(("a", 8), "first"), (("a", 16), "bad")]


def test_a_hole_is_damage_that_names_its_offsets() -> None:
    tally = Tally(lambda _: None)

    tally.note_hole(topic(), "a", 3, 7)

    (hole,) = tally.result().damages
    assert (hole.topic, hole.first_offset, hole.end_offset) == ("t", 3, 7)


def test_no_offsets_are_no_hole() -> None:
    tally = Tally(lambda _: None)

    tally.note_hole(topic(), "a", 7, 7)
    tally.note_hole(topic(), "a", 8, 7)

    assert tally.result().damages == []


def test_known_damage_explains_a_hole() -> None:
    tally = Tally(lambda _: None)
    tally.note(damage("a", 8, topic="t", first_offset=2, end_offset=9))
    tally.note(damage("b", 8, topic="t", first_offset=20))
    tally.note(damage("c", 8, topic="other", first_offset=0, end_offset=99))

    for first, end in [(3, 7), (2, 9), (30, 40), (1, 3), (8, 10)]:
        tally.note_hole(topic(), f"hole at {first}", first, end)

    holes = [one.file for one in tally.result().damages if not one.length]
    assert holes == ["hole at 1", "hole at 8"]


def test_progress_hears_of_every_byte() -> None:
    heard: list[int] = []
    tally = Tally(heard.append)

    tally.looked_at("a", 10)
    tally.looked_at("a", 20)
    tally.looked_at("b", 5)

    result = tally.result()
    assert heard == [10, 20, 5]
    assert (result.files, result.bytes) == (2, 35)


def test_frames_without_events_do_not_count() -> None:
    tally = Tally(lambda _: None)

    for events in (0, 2, 3):
        tally.count(events)

    result = tally.result()
    assert (result.frames, result.events) == (2, 5)


def damage(file: str, position: int, reason: str = "bad", **more) -> Damage:
    return Damage(file=file, position=position, length=8, reason=reason, **more)


def topic() -> TopicLog:
    home = TopicHome(
        files=Files(),
        layout=Layout(""),
        segment_cache=SegmentCache(Files()),
        report=lambda _: None,
    )
    return TopicLog(home, topic_id=1, name="t", options=TopicOptions())
