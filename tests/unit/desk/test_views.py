from __future__ import annotations

import msgspec

from penstock.desk.views.chains import ChainPage
from penstock.desk.views.events import DeliveryRow, EventDetail, TopicEventView
from penstock.desk.views.figures import FlowEdge, FlowNode, Overview
from penstock.desk.views.letters import GroupPage, GroupRow, LetterView
from penstock.desk.views.schemas import CheckView, MisfitRow, ProblemRow, SchemaView
from penstock.desk.views.subscriptions import SubscriptionRow
from penstock.log import Columns
from tests.unit.desk.office import Office


def test_a_letter_travels_as_it_is(office: Office) -> None:
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


def test_a_page_of_groups_travels_as_it_is() -> None:
    row = GroupRow(
        subscriber="me",
        topic="t",
        gateway="delivery",
        kind="KeyError",
        pattern="KeyError: …",
        count=2,
        first_ms=1,
        last_ms=2,
        first=0,
        example=1,
    )
    page = GroupPage(groups=[row], next=None, end=2)

    travelled = msgspec.msgpack.decode(msgspec.msgpack.encode(page))

    assert msgspec.convert(travelled, GroupPage) == page


def test_a_detail_travels_as_it_is() -> None:
    event = TopicEventView(
        topic="t",
        offset=1,
        id="x",
        timestamp=5,
        priority=0,
        key=None,
        headers={},
        parent=None,
        producer=None,
        payload=b"\xff",
    )
    row = DeliveryRow(
        subscriber="anna",
        temporary=False,
        state="not yet",
        tries=0,
        due_ms=None,
        errors=[],
        letter=None,
    )
    detail = EventDetail(
        event=event, deliveries=[row], more_deliveries=False, letters_cut=False
    )

    packed = msgspec.msgpack.encode(detail)

    assert msgspec.msgpack.decode(packed, type=EventDetail) == detail


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


def test_a_check_travels_and_comes_back() -> None:
    found = CheckView(
        topic="t",
        version=None,
        mode="full",
        problems=[ProblemRow(path="$", reason="no")],
        misfits=[MisfitRow(index=3, path="$.a", reason="no")],
    )

    again = msgspec.convert(msgspec.to_builtins(found), CheckView)

    assert again == found


def test_a_schema_is_text_so_that_any_number_in_it_travels() -> None:
    schema = '{"maximum":1%s}' % ("0" * 40)
    view = SchemaView(
        topic="t",
        version=1,
        mode="none",
        type="",
        at_ms=0,
        by="",
        bytes=len(schema),
        schema=schema,
        versions=[],
    )

    data = msgspec.msgpack.encode(view)

    assert msgspec.msgpack.decode(data, type=SchemaView) == view


def test_a_chain_travels_as_it_is(office: Office) -> None:
    office.broker.publish("t", Columns([b"\xff"], 5, ids=["x"], keys=[b"\xfe"]))
    office.commit()
    page = office.desk.chains.show(id="x")

    packed = msgspec.msgpack.encode(page)

    assert msgspec.convert(msgspec.msgpack.decode(packed), ChainPage) == page
