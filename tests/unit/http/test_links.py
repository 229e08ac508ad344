from __future__ import annotations

import pytest

from penstock.http.links import dashboard, login_link


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8420/"),
        ("localhost", "http://localhost:8420/"),
        ("0.0.0.0", "http://127.0.0.1:8420/"),
        ("::", "http://[::1]:8420/"),
        ("fe80::1", "http://[fe80::1]:8420/"),
    ],
)
def test_the_dashboard_is_where_a_browser_finds_it(host: str, address: str) -> None:
    assert dashboard(host, 8420) == address


def test_a_token_stands_where_no_server_sees_it() -> None:
    assert login_link("localhost", 1, "pk_x") == "http://localhost:1/#token=pk_x"
