from __future__ import annotations

import pytest

from penstock.errors import InvalidOption
from penstock.http.options import HttpOptions


def test_nobody_comes_in_without_a_token_unless_the_settings_say_so() -> None:
    options = HttpOptions()

    assert not options.open_on_loopback
    assert not options.open_metrics


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_body_bytes", 1023),
        ("max_header_bytes", 1023),
        ("max_streams", 0),
        ("header_s", 0.0),
        ("session_s", 0.0),
        ("login_attempts", 0),
        ("public_url", "penstock.example"),
        ("public_url", "ftp://penstock.example"),
        ("public_url", "https://penstock.example/below"),
        ("public_url", "https://penstock.example:port"),
        ("public_url", "https://[::1"),
    ],
)
def test_what_is_outside_its_limits_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=name):
        HttpOptions(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["https://p.example", "http://p.example:81/"])
def test_a_public_address_is_an_origin(url: str) -> None:
    assert HttpOptions(public_url=url).public_url == url
