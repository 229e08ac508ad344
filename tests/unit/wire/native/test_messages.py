from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from penstock.wire.native.messages import ClientMessage, ServerMessage

KINDS = [*get_args(ClientMessage), *get_args(ServerMessage)]


def test_numbers_of_messages_are_fixed_for_ever() -> None:
    numbers = {kind.__name__: kind.__struct_config__.tag for kind in KINDS}

    assert numbers == {
        "Hello": 1,
        "Publish": 2,
        "Subscribe": 3,
        "Settle": 4,
        "Refuse": 5,
        "Unsubscribe": 6,
        "Ask": 7,
        "Finish": 8,
        "Stage": 9,
        "Fetch": 10,
        "Prefetch": 11,
        "Welcome": 64,
        "Published": 65,
        "Subscribed": 66,
        "Events": 67,
        "Answer": 68,
        "RequestRefused": 69,
        "Ended": 70,
        "Fetched": 71,
        "ChannelMoved": 72,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_message_is_an_array_and_frozen(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.array_like
    assert kind.__struct_config__.frozen
    assert kind.__doc__
