from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from penstock.http.host_check import Hosts, client_of
from penstock.http.options import HttpOptions
from penstock.http.places import networks_in


def accepts(
    host: str | None, server: object, name: str = "0.0.0.0", **options: Any
) -> bool:
    headers = Headers({} if host is None else {"host": host})
    hosts = Hosts(HttpOptions(**options), name)
    return hosts.refusal(headers, server) is None


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("192.0.2.7:8420", ("192.0.2.7", 8420)),
        ("192.0.2.7:9999", ("192.0.2.7", 8420)),
        ("192.0.2.7", ("::ffff:192.0.2.7", 8420)),
        ("[2001:db8::7]", ("2001:db8:0:0::7", 8420)),
        ("127.0.0.1", None),
        (None, None),
    ],
)
def test_a_server_for_everybody_knows_the_address_it_was_reached_at(
    host: str | None, server: object
) -> None:
    assert accepts(host, server)


@pytest.mark.parametrize("host", ["192.0.2.8", "[2001:db8::8]", "seven.example"])
def test_another_address_is_not_its_own(host: str) -> None:
    assert not accepts(host, ("192.0.2.7", 8420))
    assert not accepts(host, None)


def test_the_name_that_it_listens_by_is_its_own() -> None:
    assert accepts("seven.example:8420", None, "Seven.example")
    assert accepts("[2001:db8::7]:8420", None, "2001:db8::7")
    assert accepts("[2001:db8::7]", None, allowed_hosts="2001:db8::7")


def client(peer: str, proxies: str, **headers: str) -> str:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return client_of(peer, Headers(said), networks_in(proxies))


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("198.51.100.1, 10.0.0.9", "198.51.100.1"),
        ("198.51.100.1:4711", "198.51.100.1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("198.51.100.1, nonsense", "10.0.0.1"),
        ("10.0.0.7, 10.0.0.8", "10.0.0.1"),
        ("", "10.0.0.1"),
        (",", "10.0.0.1"),
    ],
)
def test_the_last_address_that_is_no_proxy_is_the_client(said: str, found: str) -> None:
    assert client("10.0.0.1", "10.0.0.0/8", x_forwarded_for=said) == found


def test_only_proxies_are_believed() -> None:
    assert client("192.0.2.1", "10.0.0.0/8", x_forwarded_for="1.1.1.1") == "192.0.2.1"
    assert client("10.0.0.1", "", x_forwarded_for="1.1.1.1") == "10.0.0.1"
    assert client("", "10.0.0.0/8", x_forwarded_for="1.1.1.1") == ""


def test_the_standard_header_is_read_too() -> None:
    said = 'for=1.1.1.1, For="[2001:db8::1]:80";by=10.0.0.1;proto=https'

    assert client("10.0.0.1", "10.0.0.1", forwarded=said) == "2001:db8::1"


def test_two_headers_that_differ_are_not_believed() -> None:
    both = {"x_forwarded_for": "1.1.1.1", "forwarded": "for=2.2.2.2"}

    assert client("10.0.0.1", "10.0.0.1", **both) == "10.0.0.1"
