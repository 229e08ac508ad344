from __future__ import annotations

import pytest

from penstock.errors import LocalProtocolError
from penstock.wire.mqtt import Malformed, Reason
from penstock.wire.mqtt.primitives import (
    MAX_VARINT,
    PacketBody,
    PartialBody,
    Unfinished,
    binary,
    text,
    varint,
)


def body(data: bytes) -> PacketBody:
    return PacketBody(data, 0, len(data), "TEST")


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2_097_151, "ffff7f"),
        (2_097_152, "80808001"),
        (MAX_VARINT, "ffffff7f"),
    ],
)
def test_variable_byte_integers_have_the_bytes_of_the_specification(
    value: int, encoded: str
) -> None:
    assert varint(value).hex() == encoded
    assert body(bytes.fromhex(encoded)).varint() == value


def test_a_number_that_is_too_large_is_our_fault() -> None:
    with pytest.raises(LocalProtocolError, match="number 268435456 exceeds 268435455"):
        varint(MAX_VARINT + 1)


@pytest.mark.parametrize("data", ["ffffffff01", "ffffffff", "8000", "80"])
def test_a_bad_variable_byte_integer_is_refused(data: str) -> None:
    with pytest.raises(Malformed) as refused:
        body(bytes.fromhex(data)).varint()

    assert refused.value.reason is Reason.MALFORMED_PACKET


def test_fields_are_read_one_behind_the_other() -> None:
    fields = body(
        b"\x01\x02\x03\x04\x05\x06\x07\x00\x02\xc3\xa9\x00\x01\xff\x00\x01abc"
    )

    assert fields.byte() == 1
    assert fields.two_bytes() == 0x0203
    assert fields.four_bytes() == 0x04050607
    assert fields.text() == "é"
    assert fields.binary() == b"\xff"
    assert fields.field() == b"\x00\x01a"
    assert fields.rest() == b"bc"
    fields.finish()


def test_a_part_is_read_by_itself() -> None:
    whole = body(b"\x01\x02\x03")

    part = whole.part(2)

    assert part.rest() == b"\x01\x02"
    assert whole.byte() == 3
    with pytest.raises(Malformed):
        part.byte()
    with pytest.raises(Malformed):
        whole.part(1)


@pytest.mark.parametrize("data", [b"\xed\xa0\x80", b"\xc0\x80", b"\xff", b"a\0b"])
def test_text_is_utf8_without_surrogates_and_nul(data: bytes) -> None:
    with pytest.raises(Malformed) as refused:
        body(binary(data)).text()

    assert refused.value.reason is Reason.MALFORMED_PACKET


def test_a_byte_order_mark_is_text_like_any_other() -> None:
    assert body(text("\ufeffa")).text() == "\ufeffa"  # MQTT-1.5.4-3


def test_what_is_left_over_is_refused() -> None:
    with pytest.raises(Malformed, match="TEST has 2 bytes behind its end"):
        body(b"ab").finish()


def test_a_field_that_is_too_long_is_our_fault() -> None:
    assert len(binary(b"x" * 65_535)) == 65_537
    with pytest.raises(LocalProtocolError, match="field of 65536 bytes exceeds 65535"):
        text("x" * 65_536)


@pytest.mark.parametrize(
    ("came", "error"),
    [
        (b"", Unfinished),
        (b"\0", Unfinished),
        (b"\0\x08", Unfinished),
        (b"\0\x08abc", Unfinished),
        (b"\0\x08\xf0\x9f\x98", Unfinished),  # a character in the making
        (b"\0\x08\xff", Malformed),
        (b"\0\x08abc\xc3a", Malformed),
        (b"\0\x08\xed\xa0\x80", Malformed),
        (b"\0\x08a\0", Malformed),
        (b"\0\x20a", Malformed),  # longer than the packet
    ],
)
def test_the_beginning_of_a_text_is_right_or_wrong(
    came: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        PartialBody(came, 0, 20, "TEST").text()


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"\0\x04a\0\xff\0", "a NUL"), (b"\0\x04ab\xff\0", "not UTF-8 .byte 2")],
)
def test_what_is_wrong_first_in_a_text_counts(data: bytes, error: str) -> None:
    with pytest.raises(Malformed, match=error):
        body(data).text()
