from __future__ import annotations

import gc
from types import ModuleType

import pytest

from penstock.delivery import pages as pages_module
from penstock.delivery.pages import Page, Pages
from penstock.log import (
    Columns,
    CommittedFrame,
    GroupCommit,
    LogOptions,
    SharedRows,
    TopicOptions,
)
from penstock.model.columns import PublishColumns
from tests.unit.delivery.scene import Scene


def page_at(pages: Pages, offset: int, topic: str = "t") -> Page:
    page = pages.at(topic, offset)
    assert page is not None
    return page


def framed(*sizes: int) -> Scene:
    """Topic t with frames of so many events."""
    scene = Scene()
    for size in sizes:
        scene.publish(*[0] * size)
    return scene


PLACES = [(0, 0), (1, 0), (2, 2), (4, 2), (5, 5), (99, None), (6, None)]


@pytest.mark.parametrize(("offset", "base"), PLACES)
@pytest.mark.parametrize("max_bytes", [1, 1 << 20])
def test_page_is_the_frame_that_holds_the_offset(
    offset: int, base: int | None, max_bytes: int
) -> None:
    scene = framed(2, 3, 1)
    pages = Pages(scene.log, max_bytes)

    for _ in range(2):
        page = pages.at("t", offset)

        assert (page and page.base) == base


def test_columns_are_decoded_once() -> None:
    scene = Scene()
    columns = Columns([b"a", b"b"], ids=["x", "y"], priorities=[1, 0])
    scene.broker.publish("t", columns)
    scene.commit()

    page = page_at(scene.broker.pages, 0)

    assert (page.ids, page.payloads, page.priorities) == (
        ["x", "y"],
        [b"a", b"b"],
        [1, 0],
    )
    assert page.ids is page.ids
    assert page.payloads is page.payloads
    assert page.priorities is page.priorities
    assert (len(page), page.base, page.end) == (2, 0, 2)


def test_page_of_a_trimmed_offset_is_the_next_one() -> None:
    scene = framed(2, 2, 2)
    scene.log.trim("t", 4)

    assert page_at(scene.broker.pages, 0).base == 4
    assert scene.broker.pages.start("t") == 4
    assert scene.broker.pages.end("t") == 6


def test_page_of_a_compacted_offset_is_the_next_that_has_an_event() -> None:
    scene = Scene(log=LogOptions(tail_cache_bytes=0))
    scene.keyed(b"a", b"b")
    scene.keyed(b"c", b"a")
    scene.keyed(b"c")
    scene.publish(0)
    scene.log.compact("t")
    pages = Pages(scene.log, 1 << 20)

    found = [page_at(pages, offset).base for offset in range(6)]

    assert found == [0, 0, 2, 2, 4, 5]
    assert pages.at("t", 6) is None


@pytest.mark.parametrize("read_bytes", [1, 1 << 18])
def test_offset_that_compaction_took_from_the_end_of_a_frame_is_behind_it(
    monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(pages_module, "READ_BYTES", read_bytes)
    scene = Scene(log=LogOptions(tail_cache_bytes=0))
    scene.keyed(b"b", b"a", b"c")
    scene.keyed(b"a", b"c")
    scene.publish(0)
    scene.log.compact("t")
    pages = Pages(scene.log, 1 << 20)

    assert [page_at(pages, offset).base for offset in (0, 1, 2, 3)] == [0, 3, 3, 3]


@pytest.mark.parametrize("read_bytes", [1, 1 << 18])
def test_offset_in_a_gap_at_the_end_of_a_frame_is_behind_it(
    monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(pages_module, "READ_BYTES", read_bytes)
    scene = Scene(log=LogOptions(tail_cache_bytes=0))
    scene.keyed(b"a", b"b", b"c", b"d")
    scene.keyed(b"b", b"c")
    scene.log.compact("t")
    scene.log.truncate("t", 3)
    pages = Pages(scene.log, 1 << 20)
    assert pages.at("t", 1) is None
    scene.publish(0)

    assert [page_at(pages, offset).base for offset in range(4)] == [0, 3, 3, 3]


def test_topic_tells_whether_it_is_synced() -> None:
    scene = Scene()
    scene.broker.create_topic("os", TopicOptions(durability="os"))

    assert scene.broker.pages.relaxed("os")
    assert not scene.broker.pages.relaxed("t")


def test_topics_have_pages_of_their_own_until_they_are_forgotten() -> None:
    scene = framed(1, 1)
    scene.publish(0, 0, topic="other")
    pages = scene.broker.pages
    here, there = page_at(pages, 0), page_at(pages, 0, "other")

    pages.forget("t")
    pages.forget("nobody's")

    assert page_at(pages, 0) is not here
    assert page_at(pages, 0, "other") is there


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_cache_stays_within_its_bytes(order: tuple[int, ...]) -> None:
    scene = framed(1, 1, 1, 1)
    cost = page_at(scene.broker.pages, 0).cost
    pages = Pages(scene.log, 2 * cost)

    for offset in order:
        assert page_at(pages, offset).base == offset

        assert pages._bytes == sum(page.cost for page in pages._pages.values())
        assert pages._bytes <= 2 * cost
        bases = [base for _, base in pages._pages]
        assert sorted(bases) == pages._bases["t"]


def test_one_page_is_kept_however_large_it_is() -> None:
    scene = framed(1, 1)
    pages = Pages(scene.log, 1)

    pages.at("t", 0)
    pages.at("t", 1)

    assert len(pages._pages) == 1


def test_last_page_of_a_topic_makes_room_for_that_of_another() -> None:
    scene = framed(1)
    scene.publish(0, topic="other")
    pages = Pages(scene.log, 1)

    pages.at("t", 0)
    pages.at("other", 0)

    assert list(pages._bases) == ["other"]


@pytest.mark.parametrize(
    ("headers", "common"),
    [
        (None, {}),
        ([{"a": "1"}, {"a": "1"}], {"a": "1"}),
        ([{"a": "1"}, {"a": "2"}], None),
        ([{}, {"a": "2"}], None),
        ([{"a": "1"}], {"a": "1"}),
    ],
)
def test_headers_that_all_events_have_are_known_at_once(
    headers: list[dict[str, str]] | None, common: dict[str, str] | None
) -> None:
    scene = Scene()
    payloads = [b"x"] * len(headers or [0])
    scene.broker.publish("t", Columns(payloads, headers=headers))
    scene.commit()

    page = page_at(scene.broker.pages, 0)

    assert page.common_headers == common
    assert page.common_headers is page.common_headers
    assert page.headers == (headers or [{}])
    assert page.headers is page.headers


def test_keys_are_decoded_once() -> None:
    scene = Scene()
    scene.broker.publish("t", Columns([b"x", b"y"], keys=[b"k", None]))
    scene.commit()

    page = page_at(scene.broker.pages, 0)

    assert page.keys == [b"k", None]
    assert page.keys is page.keys


@pytest.mark.parametrize("cached", [(0,), (1,), (0, 1, 2, 3), (3, 0), (4,)])
def test_frames_that_were_gathered_since_they_were_read_are_one_page(
    cached: tuple[int, ...],
) -> None:
    scene = framed(1, 1, 1, 1, 1)
    pages = Pages(scene.log, 1 << 20)
    for offset in cached:
        pages.add(next(iter(scene.log.read("t", offset))), None)
    scene.log.roll("t")

    whole = page_at(pages, min({0, 1, 2, 3, 4} - {*cached}))

    assert (whole.base, whole.end) == (0, 5)
    assert [page_at(pages, offset) for offset in range(5)] == [whole] * 5
    assert pages._bases == {"t": [0]}
    assert list(pages._pages.values()) == [whole]
    assert pages._bytes == whole.cost


GIVEN: list[PublishColumns] = [
    {},
    {"ids": ["own", None], "keys": [b"k", None], "priorities": [3, 0]},
    {"headers": [{"a": "1"}, {"a": "1"}], "expires": [10**13, None]},
    {"headers": [{"a": "1"}, {}], "not_before": [None, 5]},
]


@pytest.mark.parametrize("given", GIVEN)
def test_a_page_of_events_that_came_with_those_of_others_is_as_one_of_a_frame(
    given: PublishColumns,
) -> None:
    scene = Scene()
    scene.broker.create_topic("u")
    pages = Pages(scene.log, 1 << 20)
    parts: list[SharedRows] = []
    scene.log.on_commit = lambda commit: parts.extend(_rows(commit))
    scene.broker.publish_rows(["u", "t", "t"], Columns([b"1", b"2", b"3"], [5, 6, 7]))
    scene.commit()
    scene.broker.publish_rows(
        ["t", "u", "t"],
        Columns([b"4", b"5", b"6"], [8, 9, 10], **_spread(given)),
    )
    scene.commit()
    ((topic, part),) = [one for one in parts[-1].parts if one[0].name == "t"]

    pages.add_part(topic.name, part.alone())

    page, (batch,) = page_at(pages, 2), scene.log.read("t", 2)
    plain = Page(batch)
    assert (page.base, page.end, len(page)) == (plain.base, plain.end, len(plain))
    assert page._batch is None  # nobody has asked for a frame
    assert page.payloads == plain.payloads == [b"4", b"6"]
    assert page.common_headers == plain.common_headers
    assert page.has_priorities == plain.has_priorities
    assert [bool(one) for one in page.expires or ()] == [
        bool(one) for one in plain.expires or ()
    ]
    assert (page.not_before or [0, 0]) == (plain.not_before or [0, 0])
    for offset in range(1, 5):
        assert page.index_of(offset) == plain.index_of(offset)
    assert [page.offset_of(at) for at in (0, 1)] == [2, 3]
    assert page._batch is None
    for name in ("ids", "keys", "priorities", "headers", "producers"):
        assert getattr(page, name) == getattr(plain, name), name
    assert page.batch.frame() == plain.batch.frame()


def _rows(commit: GroupCommit) -> list[SharedRows]:
    return [one for one in commit.contents() if not isinstance(one, CommittedFrame)]


def _spread(given: PublishColumns) -> PublishColumns:
    """What two events have, for the first and the last of three."""
    blank = {"priorities": 0, "headers": {}}
    return {  # type: ignore[return-value]
        name: [column[0], blank.get(name), column[1]]  # type: ignore[index]
        for name, column in given.items()
    }


def test_a_page_holds_on_to_nothing_of_other_topics() -> None:
    scene = Scene()
    scene.broker.create_topic("u")
    pages = Pages(scene.log, 1 << 20)
    shared: list[SharedRows] = []
    scene.log.on_commit = lambda commit: shared.extend(_rows(commit))
    scene.broker.publish_rows(["t", "u"], Columns([b"mine", b"x" * 4000]))
    scene.commit()
    for topic, part in shared[0].parts:
        pages.add_part(topic.name, part.alone())
    page = page_at(pages, 0)

    seen: set[int] = set()
    found: list[object] = [page]
    held: list[bytes] = []
    while found:
        one = found.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        held += [one] if isinstance(one, bytes) else []
        found += [x for x in gc.get_referents(one) if not isinstance(x, ModuleType)]

    assert b"mine" in held
    assert all(len(one) < 4000 for one in held)
