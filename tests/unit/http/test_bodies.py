from __future__ import annotations

import msgspec
import pytest

from penstock.errors import InvalidArgument
from penstock.http.bodies import CheckBody, EditBody


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
