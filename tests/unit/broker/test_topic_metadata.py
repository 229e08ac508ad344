from __future__ import annotations

import msgspec
import pytest

from penstock.broker.topic_metadata import (
    EMPTY,
    Comment,
    Commented,
    Described,
    Documentation,
    Forgotten,
    MetadataStep,
    ModeSet,
    Registered,
    TopicMetadata,
    Uncommented,
    Version,
    after,
)

V1 = Version(1, b"{}", "T", 5, "ann")
TEXT = Documentation("# t", 6, "bob")
NOTE = Comment(1, 7, "eve", "hm")

STEPS: list[tuple[MetadataStep, TopicMetadata]] = [
    (Registered("t", V1), TopicMetadata(versions=[V1])),
    (ModeSet("t", "full"), TopicMetadata(mode="full")),
    (Described("t", TEXT), TopicMetadata(documentation=TEXT)),
    (Commented("t", NOTE), TopicMetadata(comments=[NOTE], last_comment=1)),
]


@pytest.mark.parametrize(("step", "metadata"), STEPS)
def test_a_step_makes_another_card(step: MetadataStep, metadata: TopicMetadata) -> None:
    assert after(EMPTY, step) == metadata
    assert TopicMetadata() == EMPTY
    assert after(metadata, Forgotten("t")) == EMPTY


def test_the_number_of_a_comment_is_remembered_when_it_is_gone() -> None:
    metadata = after(after(EMPTY, Commented("t", NOTE)), Uncommented("t", 1))

    assert (metadata.comments, metadata.last_comment) == ([], 1)


def test_steps_and_cards_travel_through_a_record() -> None:
    steps = [step for step, _ in STEPS] + [Uncommented("t", 1), Forgotten("t")]
    metadata = TopicMetadata("full", [V1], TEXT, [NOTE], 1)

    data = msgspec.msgpack.encode(steps)

    assert msgspec.msgpack.decode(data, type=list[MetadataStep]) == steps
    encoded = msgspec.msgpack.encode(metadata)
    assert msgspec.msgpack.decode(encoded, type=TopicMetadata) == metadata


def test_size_counts_what_people_wrote() -> None:
    assert EMPTY.size == 0
    assert EMPTY.latest is None
    assert TopicMetadata("full", [V1], TEXT, [NOTE], 1).size > len("{}# thm")
