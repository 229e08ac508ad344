from __future__ import annotations

import msgspec
import pytest

from penstock.desk.views import figures
from penstock.desk.views.figures import FlowEdge, FlowNode, Overview
from penstock.desk.views.rows import View
from tests.unit.desk.office import Office


def test_an_overview_travels_as_it_is(office: Office) -> None:
    office.publish("t", b"a")
    look = office.desk.ask("overview", {})

    packed = msgspec.msgpack.encode(look)

    assert msgspec.convert(msgspec.msgpack.decode(packed), Overview) == look


def test_words_that_python_keeps_are_said_all_the_same() -> None:
    edge = FlowEdge(from_="a", to="b", kind="deliver", rate=1.0, count=2)

    told = msgspec.to_builtins(edge)

    assert told == {"from": "a", "to": "b", "kind": "deliver", "rate": 1.0, "count": 2}


def test_what_a_node_has_not_is_left_out() -> None:
    node = FlowNode(id="producer:a", kind="producer", name="a", rate=0.0)

    assert "lag" not in msgspec.to_builtins(node)


@pytest.mark.parametrize("name", [n for n in dir(figures) if n[0].isupper()])
def test_views_cannot_be_changed(name: str) -> None:
    view = getattr(figures, name)

    if isinstance(view, type) and issubclass(view, View):
        assert view.__struct_config__.frozen
