"""Settings of the HTTP gateway, all with defaults that work."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from penstock.errors import InvalidOption
from penstock.http.places import address_in, host_in, networks_in
from penstock.model.option import check_options, option

KIB = 1 << 10
MIB = 1 << 20
MAX_WAIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Settings of the HTTP gateway."""

    max_body_bytes: int = option(
        16 * MIB,
        "largest body of a request, and longest line of a stream of lines",
        least=KIB,
    )
    max_header_bytes: int = option(
        32 * KIB, "request line and headers of a request", least=KIB, most=MIB
    )
    header_s: float = option(
        10.0,
        "time for the headers of a request, and for the body before a login",
        above=0,
    )
    body_s: float = option(
        60.0, "time for the body of a request; a stream of lines has no limit", above=0
    )
    write_s: float = option(
        60.0,
        "a peer that takes nothing of its answer for so long is cut off",
        above=0,
    )
    keep_alive_s: float = option(
        75.0, "a connection without a request is closed after this", above=0
    )
    max_streams: int = option(
        1_000, "streams, sockets, long polls and questions in SQL at a time", least=1
    )
    stream_idle_s: float = option(
        60.0, "a reader of a stream that takes nothing for so long is cut off", above=0
    )
    max_query_events: int = option(
        10_000_000, "events of one range, as lines or as Arrow", least=1
    )
    search_events: int = option(
        100_000, "events that one request looks at when it searches", least=1
    )
    sql_questions: int = option(
        2,
        "questions in SQL that are answered at a time, each by a process of its own; "
        "0: none ever",
        least=0,
        most=100,
    )
    sql_s: float = option(10.0, "time for the answer to a question in SQL", above=0)
    sql_memory_bytes: int = option(
        512 * MIB,
        "memory that a question in SQL takes, beyond about 150 MiB for what answers",
        least=16 * MIB,
    )
    sql_rows: int = option(
        1_000, "rows of the answer to a question in SQL; the rest is cut off", least=1
    )
    sql_answer_bytes: int = option(
        4 * MIB,
        "bytes of the answer to a question in SQL; rows beyond are cut off",
        least=KIB,
        most=256 * MIB,
    )
    pull_idle_s: float = option(
        30.0,
        "a pulling client holds its events for so long; then others get them",
        above=0,
    )
    session_s: float = option(
        12 * 3600.0, "a login of a browser lasts so long without a request", above=0
    )
    max_sessions: int = option(
        1_000, "logins of browsers at a time; the oldest one goes", least=1
    )
    login_attempts: int = option(
        10,
        "failed logins a minute of one user from one address before it has to wait; "
        "over all gateways",
        least=1,
    )
    open_on_loopback: bool = option(
        False, "whether peers on this machine need no token; they may do everything"
    )
    open_metrics: bool = option(False, "whether `/metrics` needs no token")
    metrics_topics: int = option(
        100, "topics that have metrics of their own; all others are one", least=0
    )
    public_url: str | None = option(
        None,
        "address at which browsers reach this server, if it is behind a proxy; "
        "`https:` makes cookies secure",
    )
    allowed_hosts: str | None = option(
        None,
        "names and addresses, separated by spaces, by which this server is reached "
        "besides its own addresses; `*` is any, which lets pages of other sites in",
    )
    proxies: str | None = option(
        None,
        "addresses and networks of proxies, separated by spaces: where their requests "
        "come from is what they say in `X-Forwarded-For` or `Forwarded`",
    )
    pipeline_status: str | None = option(
        None, "file in which `penstock up` tells of its parts; it says so itself"
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.public_url is not None:
            _check_url(self.public_url)
        for one in (self.allowed_hosts or "").split():
            if address_in(one) is None and host_in(one) != one.lower():
                limit = "names or addresses, without ports, or `*`"
                raise InvalidOption("allowed_hosts", self.allowed_hosts, limit)
        try:
            networks_in(self.proxies)
        except ValueError:
            limit = "addresses or networks, such as 10.0.0.0/8"
            raise InvalidOption("proxies", self.proxies, limit) from None


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname)
        fits = fits and parts.path in ("", "/") and not (parts.query or parts.fragment)
        _ = parts.port
    except ValueError:
        fits = False
    if not fits:
        raise InvalidOption("public_url", url, "http://HOST or https://HOST")
