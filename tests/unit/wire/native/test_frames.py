from __future__ import annotations

import pytest

from penstock.errors import LocalProtocolError, RemoteProtocolError
from penstock.wire.native import frames
from penstock.wire.native.frames import FrameSplitter, frame

STREAM = frame(b"one") + frame(b"") + frame(b"three33!")


def test_layout_is_length_little_endian_and_message() -> None:
    assert frame(b"abc") == b"\x03\x00\x00\x00abc"


@pytest.mark.parametrize("tail", [b"", b"\x05", b"\x05\0\0\0", b"\x05\0\0\0abcd"])
def test_frames_come_out_whole(tail: bytes) -> None:
    splitter = FrameSplitter(8)

    assert splitter.feed(STREAM + tail) == [b"one", b"", b"three33!"]
    assert splitter.held_bytes == len(tail)


def test_frames_are_the_same_byte_by_byte() -> None:
    splitter = FrameSplitter(8)

    found = [f for byte in STREAM for f in splitter.feed(bytes([byte]))]

    assert found == [b"one", b"", b"three33!"]
    assert splitter.held_bytes == 0


@pytest.mark.parametrize("cut", range(1, len(STREAM)))
def test_frames_are_the_same_cut_anywhere(cut: int) -> None:
    splitter = FrameSplitter(8)

    found = splitter.feed(STREAM[:cut]) + splitter.feed(STREAM[cut:])

    assert found == [b"one", b"", b"three33!"]


@pytest.mark.parametrize("cut", range(5))
def test_a_message_that_is_too_long_is_refused_at_its_length(cut: int) -> None:
    splitter = FrameSplitter(8)
    header = frame(b"x" * 9)[:4]

    with pytest.raises(RemoteProtocolError) as caught:
        splitter.feed(header[:cut])
        splitter.feed(header[cut:])

    assert caught.value.text == "message of 9 bytes exceeds 8"


def test_a_message_longer_than_its_length_field_is_our_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "MAX_LENGTH", 2)

    with pytest.raises(LocalProtocolError, match="message of 3 bytes exceeds 2"):
        frame(b"abc")
