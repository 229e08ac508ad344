from __future__ import annotations

import pytest

from penstock.cdc.shown import Shown
from penstock.cli.cdc import shown_of
from penstock.cli.refusal import Refusal

COLLECTIONS = ["tweets", "sales.orders"]


def test_each_collection_is_shown_as_it_was_asked_for() -> None:
    found = shown_of(
        COLLECTIONS,
        ["sales.orders=customer.name", "tweets=text"],
        ["tweets=score:0.5,1,3e2"],
    )

    assert found == {
        "sales.orders": Shown(message=("customer", "name")),
        "tweets": Shown(
            message=("text",), score=("score",), thresholds=(0.5, 1.0, 300.0)
        ),
    }


def test_a_priority_needs_no_message() -> None:
    (shown,) = shown_of(COLLECTIONS, [], ["tweets=a.b:1"]).values()

    assert (shown.message, shown.score, shown.thresholds) == (None, ("a", "b"), (1.0,))


@pytest.mark.parametrize(
    ("messages", "priorities", "text"),
    [
        (["tweets"], [], "--message tweets has no ="),
        (["users=name"], [], "users is not one of --collections"),
        (["tweets=a", "tweets=b"], [], "--message names tweets twice"),
        (["tweets="], [], "'' is no name of a field"),
        (["tweets=a..b"], [], "'a..b' is no name of a field"),
        ([], ["tweets=a"], "1 to 255 numbers"),
        ([], ["tweets=a:"], "1 to 255 numbers"),
        ([], ["tweets=a:1,x"], "1 to 255 numbers"),
        ([], ["tweets=a:1,1"], "each larger than the one before"),
        ([], ["tweets=a:1,inf"], "1 to 255 numbers"),
        ([], ["tweets=a:nan"], "1 to 255 numbers"),
        ([], ["tweets=a:" + ",".join(map(str, range(256)))], "1 to 255 numbers"),
        ([], ["tweets=:1"], "'' is no name of a field"),
        ([], ["users=a:1"], "users is not one of --collections"),
    ],
)
def test_what_makes_no_sense_is_refused(
    messages: list[str], priorities: list[str], text: str
) -> None:
    with pytest.raises(Refusal) as caught:
        shown_of(COLLECTIONS, messages, priorities)

    assert text in str(caught.value)
