from __future__ import annotations

import msgspec
import pytest

from penstock.broker.card import (
    EMPTY,
    Card,
    Comment,
    Commented,
    Described,
    Documentation,
    Forgotten,
    ModeSet,
    Registered,
    Step,
    Uncommented,
    Version,
    after,
)

V1 = Version(1, b"{}", "T", 5, "ann")
TEXT = Documentation("# t", 6, "bob")
NOTE = Comment(1, 7, "eve", "hm")

STEPS: list[tuple[Step, Card]] = [
    (Registered("t", V1), Card(versions=[V1])),
    (ModeSet("t", "full"), Card(mode="full")),
    (Described("t", TEXT), Card(documentation=TEXT)),
    (Commented("t", NOTE), Card(comments=[NOTE], last_comment=1)),
]


@pytest.mark.parametrize(("step", "card"), STEPS)
def test_a_step_makes_another_card(step: Step, card: Card) -> None:
    assert after(EMPTY, step) == card
    assert Card() == EMPTY
    assert after(card, Forgotten("t")) == EMPTY


def test_the_number_of_a_comment_is_remembered_when_it_is_gone() -> None:
    card = after(after(EMPTY, Commented("t", NOTE)), Uncommented("t", 1))

    assert (card.comments, card.last_comment) == ([], 1)


def test_steps_and_cards_travel_through_a_record() -> None:
    steps = [step for step, _ in STEPS] + [Uncommented("t", 1), Forgotten("t")]
    card = Card("full", [V1], TEXT, [NOTE], 1)

    data = msgspec.msgpack.encode(steps)

    assert msgspec.msgpack.decode(data, type=list[Step]) == steps
    encoded = msgspec.msgpack.encode(card)
    assert msgspec.msgpack.decode(encoded, type=Card) == card


def test_size_counts_what_people_wrote() -> None:
    assert EMPTY.size == 0
    assert EMPTY.latest is None
    assert Card("full", [V1], TEXT, [NOTE], 1).size > len("{}# thm")
