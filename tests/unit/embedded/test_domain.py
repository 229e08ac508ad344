from __future__ import annotations

from typing import Any

import pytest

from penstock.embedded.domain import Domain
from penstock.embedded.topic import Topic
from penstock.errors import InvalidName, InvalidOption, ReservedName, SubscribedTwice


def handle(event: Any) -> None: ...


def test_a_decorator_gives_the_function_back() -> None:
    domain = Domain("a")

    assert domain.on("t")(handle) is handle
    assert domain.on_batch("u")(handle) is handle
    assert [one.topic for one in domain] == ["t", "u"]
    assert repr(domain) == "Domain('a', 2 handlers)"


def test_options_reach_the_handler() -> None:
    domain = Domain("a")

    domain.on("t", tries=9, order="key")(handle)
    domain.on_batch("u", size=7, timeout_s=2.0)(handle)
    domain.on_batch("v", concurrency=3)(handle)

    single, batch = domain.handler("t"), domain.handler(Topic("u"))
    assert single is not None and batch is not None
    assert (single.options.tries, single.options.order) == (9, "key")
    assert (batch.options.batch, batch.options.timeout_s) == (7, 2.0)
    assert batch.options.concurrency == 1
    assert [one.options.concurrency for one in domain][-1] == 3
    assert domain.handler("w") is None


def test_one_handler_for_each_topic() -> None:
    domain = Domain("a")
    domain.on("t")(handle)

    with pytest.raises(SubscribedTwice, match=r"handle \("):
        domain.on(Topic("t", int))(handle)

    assert len(list(domain)) == 1


def test_names_are_checked_when_they_are_given() -> None:
    with pytest.raises(InvalidName):
        Domain("")
    with pytest.raises(ReservedName):
        Domain("$a")
    with pytest.raises(ReservedName):
        Domain("a").on("$errors")(handle)
    with pytest.raises(InvalidOption):
        Domain("a").on("t", tries=0)
    with pytest.raises(InvalidOption):
        Domain("a").on_batch("t", size=-1)


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidOption):
        Domain("a").on_batch("t", size=0)(handle)
