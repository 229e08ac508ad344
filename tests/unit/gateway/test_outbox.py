from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import WriteFailed
from penstock.gateway.outbox import Outbox
from penstock.log import Columns, Log
from tests.unit.log.faults import FaultyFiles


class Desk:
    """An outbox over a log with one topic."""

    def __init__(self, folder: Path) -> None:
        self.files = FaultyFiles()
        self.log = Log.open(folder, files=self.files)
        self.log.create_topic("t")
        self.log.commit()
        self.box: Outbox[str] = Outbox(self.log)

    def publish(self) -> int:
        """The group of an event."""
        return self.log.append("t", Columns([b""], 0)).group

    def commit(self) -> None:
        self.log.commit()

    def fail(self) -> None:
        self.files.fail("write", "journal")
        with pytest.raises(WriteFailed):
            self.log.commit()

    @property
    def taken(self) -> list[bytes]:
        return [data for data, _ in self.box.take()]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_what_promises_nothing_goes_at_once(desk: Desk) -> None:
    assert not desk.box

    desk.box.now(b"a")
    desk.box.now(b"b", "mark")

    assert desk.box
    assert desk.box.take() == [(b"a", None), (b"b", "mark")]
    assert not desk.box
    assert desk.box.take() == []


def test_a_promise_waits_for_its_commit_and_holds_up_what_is_behind_it(
    desk: Desk,
) -> None:
    desk.box.now(b"before")
    desk.box.after(desk.publish(), b"stored", mark="mark")
    desk.box.now(b"behind")

    assert desk.taken == [b"before"]
    desk.commit()

    assert desk.box.take() == [(b"stored", "mark"), (b"behind", None)]


def test_a_group_that_is_stored_already_holds_up_nothing(desk: Desk) -> None:
    group = desk.publish()
    desk.commit()

    desk.box.after(group, b"stored")

    assert desk.taken == [b"stored"]


def test_what_failed_becomes_an_error_and_what_is_behind_it_goes_on(
    desk: Desk,
) -> None:
    desk.box.after(desk.publish(), b"stored", b"lost", "mark")
    desk.box.now(b"behind")

    desk.fail()

    assert desk.box.take() == [(b"lost", "mark"), (b"behind", None)]


def test_what_is_said_again_waits_for_the_next_commit(desk: Desk) -> None:
    desk.box.after(desk.publish(), b"kept", mark="mark")
    desk.box.now(b"behind")
    desk.fail()
    assert desk.taken == []
    desk.publish()
    desk.fail()
    assert desk.taken == []

    desk.publish()
    desk.commit()

    assert desk.box.take() == [(b"kept", "mark"), (b"behind", None)]


def test_a_failure_of_long_ago_is_still_known(desk: Desk) -> None:
    """A reader that was away while commits failed and then succeeded again."""
    desk.box.after(desk.publish(), b"first", b"first lost")
    desk.fail()
    desk.box.after(desk.publish(), b"second", b"second lost")
    desk.commit()

    assert desk.taken == [b"first lost", b"second"]


def test_of_answers_to_several_groups_those_that_were_lost_say_so(desk: Desk) -> None:
    written = desk.publish()
    desk.commit()
    failed = desk.publish()
    desk.box.each([b"a", b"b", b"c"], [written, failed, 0], lambda at: b"lost %d" % at)
    waiting = desk.taken
    desk.fail()

    assert (waiting, desk.taken) == ([], [b"alost 1c"])


def test_answers_that_promise_nothing_do_not_wait(desk: Desk) -> None:
    desk.box.each([b"a", b"b"], [0, 0], lambda _: b"lost")
    desk.box.each([b"", b""], [0, 0], lambda _: b"lost")

    assert desk.taken == [b"ab"]
