from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from penstock.errors import InvalidOption
from penstock.server.options import ListenOptions, ServerOptions, TlsOptions


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (ServerOptions, "data", ""),
        (ServerOptions, "data", "a\0b"),
        (ServerOptions, "host", ""),
        (ServerOptions, "users_file", ""),
        (ServerOptions, "max_connections", 0),
        (ServerOptions, "max_connections_per_address", -1),
        (ServerOptions, "idle_s", -0.1),
        (ServerOptions, "login_s", 0),
        (ServerOptions, "output_buffer_bytes", 0),
        (ServerOptions, "read_bytes", 0),
        (ServerOptions, "drain_s", -1),
        (ListenOptions, "line_port", -1),
        (ListenOptions, "native_port", 65_536),
        (ListenOptions, "mqtt_port", 65_536),
        (ListenOptions, "mqtts_port", -1),
        (TlsOptions, "key_file", "key.pem"),
        (TlsOptions, "client_ca_file", "ca.pem"),
        (TlsOptions, "require_client_cert", True),
    ],
)
def test_setting_outside_its_limits_is_refused(
    kind: Any, name: str, value: object
) -> None:
    with pytest.raises(InvalidOption) as caught:
        kind(**{name: value})

    assert (caught.value.name, caught.value.value) == (name, value)


def test_one_port_is_not_given_twice() -> None:
    with pytest.raises(InvalidOption, match="another port than line_port") as caught:
        ListenOptions(line_port=4041)

    assert (caught.value.name, caught.value.value) == ("publisher_port", 4041)


def test_several_ports_may_be_free_ones_or_off() -> None:
    listen = ListenOptions(
        line_port=0, consumer_port=0, maze_event_port=None, maze_client_port=None
    )

    assert (listen.line_port, listen.maze_event_port) == (0, None)


def test_a_server_is_for_this_machine_unless_told() -> None:
    assert ServerOptions().host == "127.0.0.1"
    assert ServerOptions().users_file is None


@pytest.mark.parametrize("kind", [ServerOptions, ListenOptions, TlsOptions])
def test_every_setting_has_a_help_text(kind: Any) -> None:
    assert [one.name for one in fields(kind) if not one.metadata["help"]] == []


def test_certificates_of_clients_count_only_if_somebody_vouches_for_them() -> None:
    with pytest.raises(InvalidOption, match="client_ca_file says whose"):
        TlsOptions(cert_file="cert.pem", require_client_cert=True)

    given = TlsOptions(
        cert_file="cert.pem", client_ca_file="ca.pem", require_client_cert=True
    )
    assert given.require_client_cert


def test_mqtt_has_the_ports_that_clients_know() -> None:
    assert (ListenOptions().mqtt_port, ListenOptions().mqtts_port) == (1883, 8883)


def test_certificates_name_users_only_where_they_are_checked() -> None:
    with pytest.raises(InvalidOption, match="client_ca_file"):
        TlsOptions(cert_file="c", cert_users="cn")
    TlsOptions(cert_file="c", client_ca_file="a", cert_users="cn")


def test_ports_that_stay_plain_have_names() -> None:
    tls = TlsOptions(cert_file="c", plain=" line ,http")

    assert tls.plain_ports == ("line", "http")
    assert [tls.covers(one) for one in ("line", "http", "native")] == [
        False,
        False,
        True,
    ]
    assert not TlsOptions().covers("native")
    with pytest.raises(InvalidOption, match="publisher"):
        TlsOptions(cert_file="c", plain="lime")
