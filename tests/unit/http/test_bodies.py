from __future__ import annotations

import msgspec
import pytest

from penstock.errors import BadRequest, InvalidArgument
from penstock.http.bodies import CheckBody, EditBody, is_said


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (b'{"payload": {"a":  1.10}}', b'{"a":  1.10}'),
        (b'{"payload": null}', b"null"),
        (b'{"text": "\\u00e9"}', "é".encode()),
        (b'{"text": ""}', b""),
        (b'{"base64": "AP8="}', b"\x00\xff"),
    ],
)
def test_a_payload_is_json_as_it_is_written_or_text_or_base64(
    body: bytes, payload: bytes
) -> None:
    said = msgspec.json.decode(body, type=EditBody).arguments()

    assert said == {"payload": payload, "reason": "", "dry_run": False}


@pytest.mark.parametrize("body", [b"{}", b'{"payload": 1, "text": "x"}'])
def test_a_payload_is_said_once(body: bytes) -> None:
    with pytest.raises(InvalidArgument, match="say one of"):
        msgspec.json.decode(body, type=EditBody).arguments()


def test_payloads_to_check_are_any_json() -> None:
    body = b'{"payloads": [1, {"a": [2]}, "x"], "schema": true, "mode": "none"}'

    said = msgspec.json.decode(body, type=CheckBody).arguments()

    assert said["payloads"] == [b"1", b'{"a": [2]}', b'"x"']
    assert said["schema"] is True


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"{}", False), (b'{"schema":  null }', False), (b'{"schema": {}}', True)],
)
def test_a_schema_that_is_null_is_none(body: bytes, *, said: bool) -> None:
    found = msgspec.json.decode(body, type=CheckBody)

    assert is_said(found.schema) is said
    assert (found.arguments()["schema"] is not None) is said


def test_a_schema_that_is_no_unicode_is_refused() -> None:
    found = msgspec.json.decode(b'{"schema": "\xff"}', type=CheckBody)

    with pytest.raises(BadRequest, match="no JSON"):
        found.arguments()
