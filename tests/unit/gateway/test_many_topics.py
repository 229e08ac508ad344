"""What many topics cost is counted: what is done for each of them, and what for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.gateway import line_share, native_events
from penstock.log import Batch, Columns, Log, rows
from penstock.log.commit import Commit
from penstock.log.journal import FileJournal, JournalEntry
from penstock.log.rows import Rows
from penstock.wire.native import Events, Settle, Subscribe, Subscribed
from tests.unit.gateway.native_peer import NativePeer, only
from tests.unit.gateway.scene import Rules, Scene

TOPICS = 200


class Work:
    """How often each of these is done; whatever it is, it is done."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.done: Counter[str] = Counter()
        for owner, name in ((rows, "frame_of"), (Consumer, "take"), (Commit, "run")):
            patch.setattr(owner, name, self._counting(name, getattr(owner, name)))
        append = FileJournal.append

        def entries(
            journal: FileJournal,
            number: int,
            entries: list[JournalEntry],
            *rest: Any,
            **given: Any,
        ) -> None:
            self.done["entries"] += len(entries)
            append(journal, number, entries, *rest, **given)

        patch.setattr(FileJournal, "append", entries)

    def _counting(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        # Any: whatever the work takes and gives.
        def counting(*given: Any, **named: Any) -> Any:
            self.done[name] += 1
            return work(*given, **named)

        return counting

    def take(self) -> dict[str, int]:
        """What was done since."""
        done, self.done = self.done, Counter()
        return dict(done)


@pytest.mark.parametrize("subscriber", [None, "bench"])
def test_events_of_many_topics_share_all_but_their_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subscriber: str | None
) -> None:
    scene = Scene(tmp_path, Rules())
    publisher, reader = scene.connect("line"), NativePeer(scene)
    names = [f"t{number}" for number in range(TOPICS)]
    lines = [f'pub {name} {{"msg":"x","id":"i"}}' for name in names]
    for at in range(0, TOPICS, 50):
        publisher.say(*lines[at : at + 50])
    wants = [Subscribe(1, name, subscriber=subscriber) for name in names]
    assert len(only(Subscribed, reader.say(*wants))) == TOPICS
    scene.commit()
    work = Work(monkeypatch)

    publisher.say(*lines)

    got = only(Events, reader.read())
    assert [one.offsets for one in got] == [[1]] * TOPICS
    assert work.take() == {"frame_of": 1, "take": TOPICS, "run": 1, "entries": 1}

    reader.say(*[Settle(one.channel, one.offsets) for one in got])

    noted = {} if subscriber is None else {"run": 1, "entries": 1}
    assert work.take() == noted


def test_acks_of_many_topics_ask_no_subscription_that_has_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, Rules())
    publisher, reader = scene.connect("line"), scene.connect("line")
    names = [f"t{number}" for number in range(TOPICS)]
    lines = [f'pub {name} {{"msg":"x","id":"i"}}' for name in names]
    for at in range(0, TOPICS, 50):
        publisher.say(*lines[at : at + 50])
    reader.say("window 2", *[f"sub {name}" for name in names])
    work = Work(monkeypatch)

    publisher.say(*lines)

    assert len(reader.read()) == TOPICS
    assert work.take() == {"frame_of": 1, "take": TOPICS, "run": 1, "entries": 1}

    said = reader.say(*[f"ack {name} i" for name in names])

    assert Counter(said) == {
        "acknowledged from current session": TOPICS,
        "no available message": TOPICS,
    }
    assert work.take() == {}


@pytest.mark.parametrize("name", ["both", None])
def test_an_ack_makes_room_for_whoever_waits(tmp_path: Path, name: str | None) -> None:
    scene = Scene(tmp_path, Rules())
    publisher = scene.connect("line")
    readers = [scene.connect("line") for _ in range(2 if name else 1)]
    publisher.say('pub t {"msg":0,"id":"0"}')
    for reader in readers:
        reader.say(*([f"as {name}"] if name else []), "window 1", "sub t")

    publisher.say('pub t {"msg":1,"id":"1"}', 'pub t {"msg":2,"id":"2"}')
    got = [reader.read() for reader in readers]
    holder = readers[0] if got[0] else readers[1]
    assert [len(lines) for lines in got if lines] == [1]

    said = [*holder.say("ack t 1"), *(one for r in readers for one in r.read())]

    assert sum('"id":"2"' in line for line in said) == 1


@pytest.mark.parametrize("ids", [None, ["a", "b", "c"], ["a", None, "c"]])
@pytest.mark.parametrize("times", [[5, 5, 5], [5, 6, 7]])
def test_a_page_of_columns_says_what_that_of_their_frame_does(
    tmp_path: Path, ids: list[str | None] | None, times: list[int]
) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        log.create_topic("u")
        events = Columns([b"1", b"2", b"3"], times, ids=ids)
        events.take(
            {
                "keys": [b"k", None, b""],
                "headers": [{"fields": "x"}, {}, {"h": "y"}],
                "priorities": [0, 3, 1],
                "expires": [0, 10, 0],
                "not_before": [9, 0, 0],
            }
        )
        log.append("u", Columns([b"other"], 1))
        appended = log.append("t", events)
        commit = log.begin_commit()
        assert commit is not None
        (shared,) = [one for one in commit.contents() if isinstance(one, Rows)]
        (part,) = [part for topic, part in shared.parts if topic.name == "t"]
        page, framed = (
            Page.of_part("t", part.alone()),
            Page(Batch.whole("t", *part.frame())),
        )

        names = "topic base end dense ids keys payloads priorities producers expires"
        for name in [*names.split(), "not_before", "headers", "has_headers"]:
            assert getattr(page, name) == getattr(framed, name), name
        assert page.ids == [
            one or appended.generated_id(at) for at, one in enumerate(ids or [None] * 3)
        ]
        assert len(page) == len(framed) == 3
        assert [page.index_of(at) for at in range(5)] == [
            framed.index_of(at) for at in range(5)
        ]
        assert page.columns is not None and page.columns.payloads == [b"1", b"2", b"3"]
        assert line_of(page) == line_of(framed)
        assert events_of(page) == events_of(framed)
        commit.run()
        log.end_commit(commit)


def line_of(page: Page) -> list[bytes]:
    return line_share._render(page, 0, len(page))


def events_of(page: Page) -> list[bytes]:
    return native_events.messages(1, [Portion(page, 1, 3, 1)])
