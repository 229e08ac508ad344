"""Packet ids against a model: never two things under one id, and nothing forgotten.

The journal is told of every change, a little at a time; whoever reads that, or how
things stand at any moment, has the same ids in use.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.delivery import packet_ids as flights_module
from penstock.delivery.handshake import Reply
from penstock.delivery.packet_ids import InFlight, PacketIds

# So few ids that they come round often.
MAX_ID = 40
# A client may say any id; those in use are the interesting ones.
STRANGE = st.integers(1, MAX_ID)


class FlightsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(flights_module, "MAX_ID", MAX_ID)
        self.packet_ids = PacketIds(noting=True)
        self.journal = PacketIds(noting=True)
        self.out: dict[int, InFlight] = {}
        self.released: set[int] = set()
        self.received: set[int] = set()

    def teardown(self) -> None:
        self.patch.undo()

    @rule(
        number=st.integers(1, 3),
        gaps=st.lists(st.integers(1, 3), min_size=1, max_size=30),
        qos=st.sampled_from([1, 2]),
    )
    def send(self, number: int, gaps: list[int], qos: int) -> None:
        free = MAX_ID - len(self.out) - len(self.released)
        offsets = [sum(gaps[: at + 1]) for at in range(len(gaps))][:free]
        if not offsets:
            return

        ids = self.packet_ids.send(number, offsets, qos)

        assert len(ids) == len(set(ids)) == len(offsets)
        assert not set(ids) & (self.out.keys() | self.released)
        assert all(1 <= id_ <= MAX_ID for id_ in ids)
        for id_, offset in zip(ids, offsets, strict=True):
            self.out[id_] = InFlight(number, offset, qos)

    @rule(data=st.data(), answer=st.sampled_from([Reply.ACK, Reply.PUBREC]))
    def answer(self, data: st.DataObject, answer: Reply) -> None:
        ids = data.draw(self._ids(self.out))

        done = self.packet_ids.answered(answer, ids)

        wanted = 1 if answer is Reply.ACK else 2
        known = [
            id_
            for id_ in dict.fromkeys(ids)
            if id_ in self.out and self.out[id_].qos == wanted
        ]
        assert done == [self.out.pop(id_) for id_ in known]
        if answer is Reply.PUBREC:
            self.released.update(known)

    @rule(data=st.data())
    def complete_out(self, data: st.DataObject) -> None:
        ids = data.draw(self._ids(self.released))

        freed = self.packet_ids.completed(ids)

        assert freed == len(self.released & set(ids))
        self.released -= set(ids)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.out)))

        assert self.packet_ids.refused(id_) == self.out.pop(id_)

    @rule(number=st.integers(1, 3), qos=st.sampled_from([None, 1, 2]))
    def drop(self, number: int, qos: int | None) -> None:
        gone = {
            id_: one
            for id_, one in self.out.items()
            if one.number == number and qos in (None, one.qos)
        }

        assert self.packet_ids.drop(number, qos) == [
            one.offset for one in gone.values()
        ]

        for id_ in gone:
            del self.out[id_]

    @rule(number=st.integers(1, 3))
    def abandon(self, number: int) -> None:
        gone = [id_ for id_, one in self.out.items() if one.number == number]
        assert self.packet_ids.of(number) == gone

        self.packet_ids.abandon(gone)

        for id_ in gone:
            if self.out.pop(id_).qos == 2:
                self.released.add(id_)

    @rule(ids=st.lists(STRANGE, max_size=5, unique=True))
    def receive(self, ids: list[int]) -> None:
        self.packet_ids.receive(ids)
        self.received.update(ids)

    @rule(data=st.data())
    def complete_in(self, data: st.DataObject) -> None:
        ids = data.draw(self._ids(self.received).map(lambda ids: list(set(ids))))

        known = self.packet_ids.complete(ids)

        assert set(known) == self.received & set(ids)
        self.received -= set(ids)

    @rule()
    def write(self) -> None:
        self.journal.follow(self.packet_ids.said())
        self._check(self.journal)

    @rule()
    def recover(self) -> None:
        """The server ends and comes back with what its journal has."""
        self.journal.follow(self.packet_ids.said())
        self.packet_ids, self.journal = self.journal, PacketIds(noting=True)
        self.packet_ids.said()
        self.journal.follow(self.packet_ids.whole_trail())

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        self._check(self.packet_ids)
        whole = PacketIds(noting=True)
        whole.follow(self.packet_ids.whole_trail())
        self._check(whole)

    def _check(self, packet_ids: PacketIds) -> None:
        assert list(packet_ids.out.items()) == list(self.out.items())
        assert packet_ids.released.keys() == self.released
        assert packet_ids.received == self.received

    def _ids(
        self, used: dict[int, InFlight] | set[int]
    ) -> st.SearchStrategy[list[int]]:
        known = st.sampled_from(sorted(used)) if used else STRANGE
        return st.lists(known | STRANGE, max_size=20)


TestFlights = FlightsMachine.TestCase
