"""A program with handlers over crashes, failures and restarts: nothing is lost, and
what handlers publish is there exactly once for each event that they have handled."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

import pytest

from tests.effort import effort
from tests.properties.embedded_lives import PARTS, TRIES, Lives

EXAMPLES = effort(16, 400)


async def whole(seed: int) -> Lives:
    lives = Lives(seed)
    for _ in range(lives.random.randint(1, 4)):
        await lives.live()
    found = await lives.settle()
    ids = [event.id for event in found["in"]]
    given_up = Counter(row["id"] for row in found["letters"])
    published = {
        part: Counter(event.parent for event in found[f"out-{part}"]) for part in PARTS
    }
    about = f"seed {seed}: {lives.order}, batch {lives.batch}"

    # Nothing is lost, and nothing is there twice.
    assert lives.confirmed <= set(ids), about
    assert len(set(ids)) == len(ids), about
    # Handled or given up, never both, and what came of it is all there, once.
    assert published["a"] == published["b"], about
    assert set(published["a"].values()) <= {1}, about
    assert set(given_up.values()) <= {1}, about
    assert not set(given_up) & set(published["a"]), about
    assert set(given_up) | set(published["a"]) == set(ids), about
    unfit = {event.id for event in found["in"] if not event.payload.isdigit()}
    for row in found["letters"]:
        assert row["tries"] <= TRIES, (about, row)
        assert row["tries"] == TRIES or row["id"] in unfit, (about, row)
    # One after the other, and not more at once than allowed.
    assert lives.overlaps == [], about
    assert lives.most <= (1 if lives.order == "strict" else lives.concurrency), about
    check_order(lives, found, about)
    return lives


def check_order(lives: Lives, found: dict, about: str) -> None:
    keys = {event.id: event.key for event in found["in"]}
    offsets = {event.id: event.offset for event in found["in"]}
    lanes: dict[object, list[int]] = defaultdict(list)
    for event in found["out-a"]:
        lane: object = None
        if lives.order == "key":  # without one it is in nobody's way
            lane = keys[event.parent] or event.parent
        lanes[lane].append(offsets[event.parent])
    if lives.order != "parallel":
        for lane in lanes.values():
            assert lane == sorted(lane), about


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_nothing_is_lost_and_nothing_comes_of_an_event_twice(seed: int) -> None:
    asyncio.run(whole(seed))


def test_the_lives_are_not_dull() -> None:
    """Otherwise the test above would prove nothing."""

    async def some() -> list[Lives]:
        return [await whole(seed) for seed in range(1000, 1006)]

    lives = asyncio.run(some())

    assert sum(len(one.confirmed) for one in lives) > 100
    assert any(one.faults for one in lives)
    assert any(count > 1 for one in lives for count in one.begun.values())
    assert {one.order for one in lives} == {"parallel", "key", "strict"}
