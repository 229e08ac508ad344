"""Payloads as JSON text that fits on one line. Shared by the protocols of lines.

What is stored as the payload of an event need not be JSON: other protocols publish
any bytes. A client that reads lines gets JSON all the same: JSON as it is (numbers keep
their spelling), everything else as a JSON string, with U+FFFD for bytes that are not
UTF-8.

The decoder used to check skips over strings without looking at their encoding, so
that is checked apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

# What a decoder of msgspec raises: DecodeError and UnicodeDecodeError are ValueErrors;
# nesting beyond what the stack carries is a RecursionError.
NOT_JSON = (ValueError, RecursionError)

_check = msgspec.json.Decoder(msgspec.Raw).decode


def one_line(payload: bytes) -> bytes:
    """``payload`` as JSON text without line ends."""
    try:
        _check(payload)
        payload.decode()
        if b"\n" in payload or b"\r" in payload:
            return msgspec.json.format(payload, indent=-1)
    except NOT_JSON:
        return msgspec.json.encode(payload.decode(errors="replace"))
    return payload


def one_line_each(payloads: Sequence[bytes]) -> Sequence[bytes]:
    """``one_line`` of many: nearly free of charge if all of them are plain."""
    try:
        for _ in map(_check, payloads):
            pass
    except NOT_JSON:
        return [one_line(payload) for payload in payloads]
    text = b"".join(payloads)
    if b"\n" in text or b"\r" in text or not all_utf8(payloads):
        return [one_line(payload) for payload in payloads]
    return payloads


def all_utf8(texts: Sequence[bytes]) -> bool:
    """Whether each of ``texts`` is UTF-8.

    Joined by a byte that neither continues nor completes a character, they are good
    together exactly if each is alone.
    """
    joined = b"\n".join(texts)
    try:
        return joined.isascii() or bool(joined.decode())
    except UnicodeDecodeError:
        return False


def why_not_json(data: bytes) -> str:
    """What keeps ``data`` from being JSON, for a person; empty if nothing does."""
    try:
        data.decode()
        _check(data)
    except UnicodeDecodeError as error:
        return f"not UTF-8 (byte {error.start})"
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return str(error).removeprefix("JSON is malformed: ")
    return ""
