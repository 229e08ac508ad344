from __future__ import annotations

import msgspec
import pytest

from penstock.desk.views import rows
from penstock.desk.views.letters import LetterView
from penstock.desk.views.rows import SubscriptionRow, View
from tests.unit.desk.office import Office


def test_views_travel_as_they_are(office: Office) -> None:
    office.publish("t", b"\xff")
    office.bury(office.subscribe("me", "t", tries=1))
    letter = office.desk.letters.show(number=0)

    packed = msgspec.msgpack.encode(letter)

    assert msgspec.convert(msgspec.msgpack.decode(packed), LetterView) == letter


def test_a_view_can_be_read_as_the_row_it_extends(office: Office) -> None:
    office.publish("t", b"0")
    office.subscribe("me", "t")
    view = office.desk.subscription(subscriber="me", topic="t")

    row = msgspec.convert(msgspec.to_builtins(view), SubscriptionRow)

    assert row == office.desk.subscriptions().subscriptions[0]


@pytest.mark.parametrize("name", [n for n in dir(rows) if n[0].isupper()])
def test_views_cannot_be_changed(name: str) -> None:
    view = getattr(rows, name)

    if isinstance(view, type) and issubclass(view, View):
        assert view.__struct_config__.frozen
