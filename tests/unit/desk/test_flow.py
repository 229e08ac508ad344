from __future__ import annotations

import pytest

from penstock.desk import flow as module
from penstock.desk.figures import Figures
from penstock.desk.flow import Sampler, Samples
from penstock.desk.views.figures import Flow, FlowEdge, FlowNode
from penstock.log import Batch, Columns, frame_of
from penstock.model.ids import id_base, low_id
from tests.unit.desk.office import Office


def pass_a_second(office: Office) -> None:
    office.clock.advance(1.0)
    office.broker.tick(office.now_s)


def put(
    office: Office,
    topic: str,
    count: int = 1,
    *,
    producer: str | None = None,
    parent: str | None = None,
    type_: str | None = None,
    id_: str | None = None,
) -> str:
    """Publish events that are alike; the id of the first."""
    columns = Columns(
        [b"x"] * count,
        int(office.now_s * 1000),
        ids=None if id_ is None else [id_] * count,
        headers=None if type_ is None else [{"type": type_}] * count,
        parents=None if parent is None else [parent] * count,
        producer=producer,
    )
    appended = office.broker.publish(topic, columns)
    office.commit()
    return id_ or appended.generated_id(0)


def edge(flow: Flow, from_: str, to: str) -> FlowEdge:
    (found,) = [one for one in flow.edges if (one.from_, one.to) == (from_, to)]
    return found


def node(flow: Flow, id_: str) -> FlowNode:
    (found,) = [one for one in flow.nodes if one.id == id_]
    return found


def test_nothing_flows_where_nothing_is(office: Office) -> None:
    flow = Figures(office.broker).flow.look()

    assert (flow.nodes, flow.edges, flow.more) == ([], [], False)


def test_publishers_lead_to_their_topics(office: Office) -> None:
    put(office, "orders", 3, producer="shop")
    put(office, "orders", 1)
    pass_a_second(office)

    flow = Figures(office.broker).flow.look()

    shop = edge(flow, "producer:shop", "topic:orders")
    assert (shop.kind, shop.rate, shop.count) == ("publish", 3.0, 3)
    assert edge(flow, "producer:", "topic:orders").count == 1
    assert node(flow, "topic:orders").rate == 4.0
    assert node(flow, "producer:shop").kind == "producer"


def test_topics_lead_to_their_subscribers(office: Office) -> None:
    put(office, "orders", 4)
    consumer = office.subscribe("billing", "orders", window=2)
    office.take(consumer)
    pass_a_second(office)

    flow = Figures(office.broker).flow.look()

    found = edge(flow, "topic:orders", "subscriber:billing")
    assert (found.kind, found.rate, found.count) == ("deliver", 2.0, 2)
    billing = node(flow, "subscriber:billing")
    assert (billing.lag, billing.state, billing.rate) == (4, "connected", 2.0)
    office.broker.detach(consumer)
    assert node(Figures(office.broker).flow.look(), billing.id).state == "away"


def test_a_suspended_subscriber_is_told_so(office: Office) -> None:
    put(office, "orders")
    consumer = office.subscribe("billing", "orders")
    office.broker.failure_handling.suspend(consumer.subscription)

    flow = Figures(office.broker).flow.look()

    assert node(flow, "subscriber:billing").state == "suspended"


def test_parents_lead_from_topic_to_topic(office: Office) -> None:
    cause = put(office, "orders", producer="shop")
    put(office, "invoices", 2, parent=cause, type_="invoice.made")
    pass_a_second(office)

    flow = Figures(office.broker).flow.look()

    found = edge(flow, "topic:orders", "topic:invoices")
    assert (found.kind, found.rate, found.count) == ("cause", 2.0, 2)
    assert found.types == {"invoice.made": 2}
    assert (flow.sampled.events, flow.sampled.parents, flow.sampled.unknown) == (
        3,
        2,
        0,
    )


def test_a_cause_with_an_id_of_its_own_is_looked_up(office: Office) -> None:
    put(office, "orders", id_="order-17")
    put(office, "invoices", parent="order-17")
    put(office, "invoices", parent="nobody-knows")
    while office.broker.chains.step():
        pass

    flow = Figures(office.broker).flow.look()

    assert edge(flow, "topic:orders", "topic:invoices").count == 1
    assert flow.sampled.unknown == 1


def test_no_more_than_some_causes_are_looked_up_at_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_PARENTS", 1)
    for number in range(3):
        put(office, "orders", id_=f"order-{number}")
        put(office, "invoices", parent=f"order-{number}")
    while office.broker.chains.step():
        pass

    flow = Figures(office.broker).flow.look()

    assert (flow.sampled.parents, flow.sampled.unknown) == (3, 2)


def test_an_event_is_sampled_once(office: Office) -> None:
    put(office, "orders", 5)
    watch = Figures(office.broker).flow
    watch.look()

    put(office, "orders", 2)

    assert watch.look().sampled.events == 7
    assert watch.look().sampled.events == 7


def test_of_many_events_the_newest_are_sampled(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_EVENTS", 10)
    put(office, "orders", 100, producer="old")
    put(office, "orders", 10, producer="new")
    pass_a_second(office)

    flow = Figures(office.broker).flow.look()

    assert flow.sampled.events == 10
    # All of the rate is told of those that were seen.
    assert edge(flow, "producer:new", "topic:orders").rate == 110.0


def test_older_samples_count_less(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_EVENTS", 8)
    watch = Figures(office.broker).flow
    put(office, "orders", 8, producer="old")
    watch.look()
    put(office, "orders", 2, producer="new")

    flow = watch.look()

    assert edge(flow, "producer:old", "topic:orders").count == 4
    assert edge(flow, "producer:new", "topic:orders").count == 1


def test_all_is_forgotten_when_nobody_looks(office: Office) -> None:
    put(office, "orders", 5)
    watch = Figures(office.broker).flow
    watch.look()
    put(office, "orders", 5)

    office.clock.advance(module.FORGET_MS / 1000)

    assert watch.look().sampled.events == 10


def test_the_busiest_edges_are_told_where_there_are_too_many(office: Office) -> None:
    put(office, "a", 1, producer="few")
    put(office, "b", 9, producer="many")
    pass_a_second(office)

    flow = Figures(office.broker).flow.look(limit=1)

    assert [one.from_ for one in flow.edges] == ["producer:many"]
    assert flow.more
    assert [one.id for one in flow.nodes if one.kind == "producer"] == ["producer:many"]


def test_old_names_go_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_NAMES", 2)
    monkeypatch.setattr(module, "KEPT_EVENTS", 10)
    samples = Samples()
    samples.events = 12
    samples.producers.update({"a": 6, "b": 2, "c": 4})

    samples.age()

    assert samples.events == 6
    assert samples.producers == {"a": 3, "c": 2}


def test_events_that_retention_took_are_not_looked_for(office: Office) -> None:
    office.publish("t", b"a", b"b")
    topic = office.broker.log.topic("t")
    sampler = Sampler(office.broker)
    office.broker.log.trim("t", 1)

    sampler.look([topic])

    assert (sampler.seen, sampler.of(topic).events) == (1, 1)


def test_topics_are_known_by_ids_of_whichever_time(office: Office) -> None:
    sampler = Sampler(office.broker)
    columns = Columns([b"x", b"y"], [1_000, 2_000])
    columns.ids_by_time = True
    gathered = Batch.of(
        "a", frame_of(columns, 0, id_base(1_000, low_id(bytes(range(10)))))
    )

    sampler._note(Samples(), gathered)

    assert [sampler._known_home(one) for one in gathered.ids()] == ["a", "a"]


def test_no_more_than_some_batches_are_remembered(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BATCHES", 1)
    monkeypatch.setattr(module, "LOOK_PARENTS", 0)
    first = office.broker.publish("a", Columns([b"x"], 1_000))
    office.commit()
    office.broker.publish("b", Columns([b"x"], 2_000))
    office.broker.publish("c", Columns([b"x"], 3_000, parents=[first.generated_id(0)]))
    office.commit()
    topics = [office.broker.log.topic(name) for name in "abc"]
    sampler = Sampler(office.broker)

    sampler.look(topics)

    assert (sampler.parents, sampler.unknown) == (1, 1)
