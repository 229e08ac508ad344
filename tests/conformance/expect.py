"""How a server ends what it cannot accept, as the two versions allow it."""

from __future__ import annotations

from tests.conformance.packets import CONNACK, DISCONNECT, Packet
from tests.conformance.peer import Peer

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82


def broken_off(peer: Peer, *reasons: int) -> None:
    """The server ends the connection; version 5 may say why, with one of these."""
    said = peer.closed()
    if said and said[-1].kind == DISCONNECT:
        reason = said.pop().reason
        assert reason in (reasons or (MALFORMED, PROTOCOL_ERROR)), f"{reason:#x}"
    assert [one for one in said if one.kind in (CONNACK, DISCONNECT)] == []


def turned_away(peer: Peer, *reasons: int) -> None:
    """A malformed CONNECT: version 5 may answer it, 3.1.1 just closes."""
    said = peer.closed()
    if peer.version == 5 and said:
        check_refusal(said.pop(), *(reasons or (MALFORMED, PROTOCOL_ERROR)))
    assert said == []


def refused(peer: Peer, *reasons: int) -> None:
    """A CONNECT that is answered with a refusal, then the connection is closed."""
    said = peer.closed()
    assert len(said) == 1, said
    check_refusal(said[0], *reasons)


def check_refusal(answer: Packet, *reasons: int) -> None:
    assert answer.kind == CONNACK
    assert answer.reason in reasons, f"{answer.reason:#x}"
    assert not answer.session_present
