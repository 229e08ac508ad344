"""An event that ends the process of its handler becomes a dead letter, it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock import desk
from tests.process.embedded_poison import COUNT, POISON, TRIES
from tests.process.embedded_process import program

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("flavour", "death"), [("async", "kill"), ("blocking", "exit")]
)
def test_a_poisonous_event_ends_in_the_desk_and_its_neighbours_are_handled(
    tmp_path: Path, flavour: str, death: str
) -> None:
    data, side = tmp_path / "data", tmp_path / "side"

    said, deaths = "", -1
    while said != "settled" and deaths <= TRIES:
        with program("embedded_poison", data, side, flavour, death) as shop:
            said = shop.line()
            deaths += 1
            code = shop.wait()

    assert (deaths, code) == (TRIES, 0), "how often it died, and how it ended"
    with penstock.open(data) as broker:
        letters = broker.ask(desk.list_all())
        assert [letter.offset for letter in letters] == [POISON]
        errors = broker.ask(desk.show(letters[0].number)).failures
    assert [error.kind for error in errors] == ["Lost"] * TRIES
    handled = {int(line) for line in side.read_text().split()}
    assert handled == set(range(COUNT)) - {POISON}
