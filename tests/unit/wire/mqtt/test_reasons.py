from __future__ import annotations

import pickle

import pytest

from penstock.errors import RemoteProtocolError
from penstock.wire.mqtt import reasons
from penstock.wire.mqtt.reasons import Malformed, Reason, checked


def test_an_error_says_what_to_answer() -> None:
    error = Malformed(Reason.PACKET_TOO_LARGE, "packet of 9 bytes exceeds 8")

    assert isinstance(error, RemoteProtocolError)
    assert error.reason is Reason.PACKET_TOO_LARGE
    assert str(error) == "mqtt protocol: packet of 9 bytes exceeds 8"


def test_an_error_can_be_sent_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(Malformed(Reason.PROTOCOL_ERROR, "no")))

    assert (error.reason, error.text) == (Reason.PROTOCOL_ERROR, "no")


def test_numbers_are_those_of_the_specification() -> None:
    assert [int(reason) for reason in Reason] == [
        *(0x00, 0x01, 0x02, 0x04, 0x10, 0x11, 0x18, 0x19),
        *range(0x80, 0xA3),
    ]


def test_a_reason_is_one_that_the_packet_can_have() -> None:
    assert checked(0x92, reasons.RELEASED, "PUBREL") is (
        Reason.PACKET_IDENTIFIER_NOT_FOUND
    )
    for code in (0x10, 0x03, 0xFF):
        with pytest.raises(Malformed, match=f"PUBREL has reason 0x{code:02x}"):
            checked(code, reasons.RELEASED, "PUBREL")


def test_every_refusal_has_an_old_return_code_that_is_one() -> None:
    assert {*reasons.OLD_CONNACK.values()} == {*range(6)}
    for code, reason in enumerate(reasons.OLD_REASONS):
        assert reasons.OLD_CONNACK[reason] == code


def test_the_sides_have_disconnects_of_their_own() -> None:
    assert {
        Reason.DISCONNECT_WITH_WILL
    } == reasons.CLIENT_DISCONNECT - reasons.SERVER_DISCONNECT
    assert Reason.SESSION_TAKEN_OVER not in reasons.CLIENT_DISCONNECT
