"""Every setting of retry is wherever a subscription is made, stored or looked at.

A setting that is added to ``penstock.model.policy.Retry`` fails here for each place
that does not know it; the planted one shows that each of them can fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from penstock.client.aio import AsyncClient
from penstock.client.blocking import Client
from penstock.client.session import NativeSession, SubscribeOptions
from penstock.desk.views.subscriptions import SubscriptionView
from penstock.embedded import HandlerOptions
from penstock.embedded.options import HandlerSettings
from penstock.http.following import FollowTerms
from penstock.http.pull import Pull
from penstock.model.policy import (
    POLICY,
    RETRY,
    Policy,
    Retry,
    RetrySettings,
    settings_in,
)
from penstock.wire.native import FrameSplitter, Subscribe, decode_client

DOCS = Path(__file__).parents[1] / "docs"
PLANTED = "colour"
# A value of each that is neither a policy's default nor a handler's.
SAMPLES: dict[str, Any] = {
    "tries": 7,
    "backoff_s": 1.5,
    "backoff_factor": 3.0,
    "max_backoff_s": 9.0,
    "jitter": 0.25,
    "order": "priority",
    "window": 12,
    "ack_timeout_s": 2.5,
    "in_order": True,
    PLANTED: "red",
}
# What a policy has besides retry, and why the one or the other place does not say it.
RULES = {"order", "window", "ack_timeout_s", "in_order"}
OF_GATEWAYS = {
    "exhausted": "a gateway decides whether its clients have dead letters",
    "qos": "auto_ack says it natively, the packet in MQTT",
    "release_tries": "of the handshake of QoS 2, which gateways carry out",
    "release_interval_s": "of the handshake of QoS 2, which gateways carry out",
}
NOT_PULLED = {"in_order": "who pulls does not keep events in order itself"}
NOT_SHOWN = {
    "in_order": "of handlers: their program says their order",
    "release_tries": "no server lets it be changed",
    "release_interval_s": "no server lets it be changed",
}


# One function a place; each raises if it does not know the setting.


def in_what_is_checked(name: str) -> None:
    """``tries`` may be None for clients, not for handlers: each says its own."""
    assert name in get_type_hints(RetrySettings) or name == "tries"


def in_what_clients_take(name: str) -> None:
    assert name in get_type_hints(SubscribeOptions)
    for client in (AsyncClient, Client):
        assert client.subscribe.__annotations__["options"] == "Unpack[SubscribeOptions]"


def in_the_native_message(name: str) -> None:
    session = NativeSession()
    given: Any = {name: SAMPLES[name]}
    session.subscribe("orders", "me", **given)
    (body,) = FrameSplitter(1 << 20).feed(session.output())
    message = decode_client(body)
    assert isinstance(message, Subscribe)
    assert message.subscriber == "me"
    assert getattr(message, name) == SAMPLES[name]


def in_what_handlers_take(name: str) -> None:
    assert name in get_type_hints(HandlerSettings)
    given: Any = {name: SAMPLES[name]}
    assert getattr(HandlerOptions(**given).policy(1), name) == SAMPLES[name]


def in_what_http_pulls_take(name: str) -> None:
    body = msgspec.json.encode({name: SAMPLES[name]})
    terms = msgspec.json.decode(body, type=Pull).terms
    policy = terms.policy(None, Policy())
    assert getattr(policy, name) == SAMPLES[name]


def in_what_the_desk_shows(name: str) -> None:
    assert name in SubscriptionView.__struct_fields__


def in_the_docs(name: str) -> None:
    for page in ("embedded.md", "http.md", "protocols/native.md"):
        assert re.search(rf"\b{name}\b", (DOCS / page).read_text()), page


EVERYWHERE = (
    in_what_is_checked,
    in_what_clients_take,
    in_the_native_message,
    in_what_handlers_take,
    in_what_http_pulls_take,
    in_what_the_desk_shows,
    in_the_docs,
)
EXCEPTIONS = {in_what_http_pulls_take: NOT_PULLED, in_what_the_desk_shows: NOT_SHOWN}


@pytest.mark.parametrize(
    ("place", "name"),
    [
        pytest.param(place, name, id=f"{name}-{place.__name__}")
        for place in EVERYWHERE
        for name in RETRY
        if name not in EXCEPTIONS.get(place, ())
    ],
)
def test_a_setting_of_retry_is_there(place: Callable[[str], None], name: str) -> None:
    place(name)


@pytest.mark.parametrize("place", EVERYWHERE)
def test_a_setting_that_is_nowhere_is_missed(place: Callable[[str], None]) -> None:
    with pytest.raises(Exception):  # noqa: B017  # whatever each says of it
        place(PLANTED)


@pytest.mark.parametrize("name", sorted(RULES))
def test_the_other_rules_are_said_by_clients(name: str) -> None:
    in_what_clients_take(name)
    in_the_native_message(name)


def test_every_rule_of_a_policy_is_somewhere_or_has_its_reason() -> None:
    assert {*RETRY, *RULES, *OF_GATEWAYS} == set(POLICY)
    pulled, shown = FollowTerms.__struct_fields__, SubscriptionView.__struct_fields__
    assert {*RETRY, *RULES} - set(pulled) == set(NOT_PULLED)
    assert set(POLICY) - set(shown) == set(NOT_SHOWN)


def test_what_clients_say_is_what_the_message_has() -> None:
    said = {"seq", "topic", "subscriber", *get_type_hints(SubscribeOptions)}

    assert said == set(Subscribe.__struct_fields__)


def test_a_client_that_says_nothing_has_the_defaults_of_a_policy() -> None:
    message, policy = Subscribe(1, "orders"), Policy(window=1000)

    for name in (*RETRY, *RULES):
        assert getattr(message, name) == getattr(policy, name)


def test_the_defaults_of_handlers_are_their_own() -> None:
    own = {"tries": 5, "backoff_s": 0.5, "max_backoff_s": 60.0, "jitter": 0.2}

    assert settings_in(HandlerOptions(), RETRY) == {**asdict(Retry()), **own}
