"""``penstock.desk`` is a room of the house, and what programs ask: both at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock.desk as room
from penstock.embedded import desk as asked

MODULES = {path.stem for path in Path(room.__file__).parent.iterdir()}


def test_programs_find_every_name_that_they_can_ask_with() -> None:
    assert set(asked.__all__) == room.ASKED
    assert all(getattr(room, name) is getattr(asked, name) for name in asked.__all__)


def test_no_module_of_the_room_hides_a_name_of_programs() -> None:
    assert not MODULES & room.ASKED


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="penstock.desk.*nothing"):
        room.nothing  # noqa: B018 - it is the look that raises


@pytest.mark.parametrize(
    "first",
    ["penstock", "penstock.embedded", "penstock.desk.desk", "penstock.client.redrive"],
)
def test_programs_find_them_whatever_was_imported_before(first: str) -> None:
    program = (
        f"import {first}; from penstock import desk; import penstock\n"
        "assert penstock.desk is desk\n"
        "desk.errors(); desk.audit(); desk.topics(); desk.Filter()\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


def test_rows_are_imported_without_what_programs_ask_with() -> None:
    program = (
        "import sys; from penstock.desk.views.letters import Filter\n"
        "assert not {'penstock.embedded', 'penstock.broker.broker'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", program], check=True)
