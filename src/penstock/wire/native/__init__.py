"""The protocol of Penstock's own clients: frames of MessagePack, events in columns."""

from __future__ import annotations

from penstock.wire.native.codec import decode_client, decode_server, encode
from penstock.wire.native.frames import FrameSplitter
from penstock.wire.native.messages import (
    Answer,
    Ask,
    ClientMessage,
    Ended,
    Events,
    Fetch,
    Fetched,
    Finish,
    Hello,
    Moved,
    Problem,
    Publish,
    Published,
    Refuse,
    ServerMessage,
    Settle,
    Stage,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
)

__all__ = [
    "Answer",
    "Ask",
    "ClientMessage",
    "Ended",
    "Events",
    "Fetch",
    "Fetched",
    "Finish",
    "FrameSplitter",
    "Hello",
    "Moved",
    "Problem",
    "Publish",
    "Published",
    "Refuse",
    "ServerMessage",
    "Settle",
    "Stage",
    "Subscribe",
    "Subscribed",
    "Unsubscribe",
    "Welcome",
    "decode_client",
    "decode_server",
    "encode",
]
