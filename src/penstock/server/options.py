"""Settings of the server: where it listens and stores, and its limits."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import InvalidOption
from penstock.gateway.gateway import LOGIN_BYTES
from penstock.model.option import check_options, option
from penstock.server.sync_pace import MAX_SYNC_WAIT_S, SYNC_WAIT_S

KIB = 1 << 10
MIB = 1 << 20
MAX_PORT = 65_535
# Ports that take a login: with a certificate they speak TLS.
TLS_PORTS = ("line", "consumer", "publisher", "native", "http")
# The port for MQTT that speaks TLS is another one.
ALWAYS_PLAIN, ALWAYS_TLS = "mqtt", "mqtts"
# Ports that could send a password in clear.
LOGIN_PORTS = (*TLS_PORTS, ALWAYS_PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Settings of the process and of every connection."""

    data: str = option("penstock-data", "data directory; it is created if need be")
    host: str = option(
        "127.0.0.1",
        "address or name to listen on; other than loopback needs `users_file`",
    )
    users_file: str | None = option(
        None, "file of users and passwords; `off` lets every client in without a login"
    )
    max_connections: int = option(
        10_000, "connections at a time, over all gateways", least=1
    )
    max_connections_per_address: int = option(
        1_000, "connections at a time from one address; 0 is no limit", least=0
    )
    idle_s: float = option(
        0.0,
        "a connection that sends nothing for so long is closed; 0 is never",
        least=0,
    )
    max_strangers: int = option(
        400,
        "connections at a time, over all ports, that have not said who they are",
        least=1,
    )
    stranger_s: float = option(
        2.0,
        "time such a connection has, before another one may have its place",
        above=0,
    )
    login_s: float = option(
        30.0,
        "time to log in, at ports that ask for it, and for a TLS handshake",
        above=0,
    )
    login_bytes: int = option(
        LOGIN_BYTES,
        "longest line, message or packet of a client that has not said who it is",
        least=KIB,
    )
    output_buffer_bytes: int = option(
        MIB, "output kept for a connection that does not read; no more is made", least=1
    )
    read_bytes: int = option(256 * KIB, "most bytes of one read of a socket", least=1)
    sync_wait_s: float = option(
        SYNC_WAIT_S,
        "a small commit is synced without a thread if that is expected to take no "
        "longer; 0 is never",
        least=0,
        most=MAX_SYNC_WAIT_S,
    )
    drain_s: float = option(
        10.0, "time to finish what was begun when the server is told to stop", least=0
    )

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("data", "host", "users_file"):
            value = getattr(self, name)
            if value is not None and (not value or "\0" in value):
                raise InvalidOption(name, value, "not empty, and without NUL")


def _port(help_: str, number: int | None) -> int | None:
    return option(number, f"{help_}; 0 is a free one", least=0, most=MAX_PORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOptions:
    """The ports. None: there is no listener."""

    line_port: int | None = _port("port of the line gateway", 8000)
    consumer_port: int | None = _port("port of the JSON gateway for consumers", 4040)
    publisher_port: int | None = _port("port of the JSON gateway for publishers", 4041)
    maze_event_port: int | None = _port("port of the maze gateway for the source", 9090)
    maze_client_port: int | None = _port("port of the maze gateway for clients", 9099)
    native_port: int | None = _port("port of the native gateway", 8410)
    control_port: int | None = _port("port of the control gateway", None)
    http_port: int | None = _port("port of the HTTP gateway and dashboard", 8420)
    mqtt_port: int | None = _port("port of the MQTT gateway", 1883)
    mqtts_port: int | None = _port(
        "port of the MQTT gateway over TLS, if there is a certificate", 8883
    )

    def __post_init__(self) -> None:
        check_options(self)
        taken: dict[int, str] = {}
        for name in self.__slots__:
            port = getattr(self, name)
            if port and taken.setdefault(port, name) != name:
                raise InvalidOption(name, port, f"another port than {taken[port]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """Certificates, for the ports that speak TLS."""

    cert_file: str | None = option(
        None, "certificate of the server, with those that vouch for it, as PEM"
    )
    key_file: str | None = option(
        None, "private key of the certificate, as PEM; `off` if it is in the same file"
    )
    client_ca_file: str | None = option(
        None, "certificates that vouch for those of clients, as PEM"
    )
    require_client_cert: bool = option(
        False, "whether clients without a certificate are turned away"
    )
    cert_users: str = option(
        "off",
        "which name in a client's certificate is its user, who needs no password: the "
        "common name, or the one DNS name or e-mail address beside it",
        choices=("off", "cn", "dns", "email"),
    )
    plain: str | None = option(
        None,
        "ports that stay without TLS, such as `line,http`; beside a certificate `mqtt` "
        "answers this machine only, unless it is named here",
    )

    @property
    def plain_ports(self) -> tuple[str, ...]:
        """The names in ``plain``."""
        return tuple(filter(None, map(str.strip, (self.plain or "").split(","))))

    def covers(self, port: str) -> bool:
        """Whether the port of this name speaks TLS."""
        if self.cert_file is None:
            return False
        named = port in TLS_PORTS and port not in self.plain_ports
        return named or port == ALWAYS_TLS

    def confines(self, port: str) -> bool:
        """Whether the port answers this machine only, as it could speak TLS."""
        wanted = self.cert_file is not None and port not in self.plain_ports
        return wanted and port == ALWAYS_PLAIN

    def __post_init__(self) -> None:
        check_options(self)
        for port in self.plain_ports:
            if port not in LOGIN_PORTS:
                limit = f"names with commas between them, of {', '.join(LOGIN_PORTS)}"
                raise InvalidOption("plain", self.plain, limit)
        if self.cert_users != "off" and self.client_ca_file is None:
            limit = "off, unless client_ca_file says whose certificates count"
            raise InvalidOption("cert_users", self.cert_users, limit)
        if self.require_client_cert and self.client_ca_file is None:
            limit = "false, unless client_ca_file says whose certificates count"
            raise InvalidOption("require_client_cert", True, limit)
        for name in ("key_file", "client_ca_file"):
            if getattr(self, name) is not None and self.cert_file is None:
                raise InvalidOption(name, getattr(self, name), "off without cert_file")
