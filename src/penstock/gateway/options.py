"""Settings of the gateways, one class for each, all with defaults that work."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import InvalidName, InvalidOption
from penstock.log import Durability
from penstock.model.option import check_options, option
from penstock.model.policy import MAX_WINDOW
from penstock.model.topic import topic_name
from penstock.model.topic_filter import check_filter

KIB = 1 << 10
MIB = 1 << 20

# Words of the line gateway that are the same everywhere.
FIXED_WORDS = ("as", "confirm", "window", "help")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOptions:
    """Settings of the line gateway."""

    max_line_bytes: int = option(
        MIB,
        "longest line of a client; a longer one is answered with an error",
        least=1,
    )
    create_on_sub: bool = option(
        False, "whether `sub` creates a topic that does not exist, or is refused"
    )
    window: int = option(
        1,
        "events sent to a subscriber ahead of its acks",
        least=1,
        most=MAX_WINDOW,
    )

    login_attempts: int = option(
        5, "failed logins before a connection is closed", least=1
    )
    pub_word: str = option("pub", "what clients say to publish an event")
    sub_word: str = option("sub", "what clients say to subscribe to a topic")
    unsub_word: str = option("unsub", "what clients say to end that")
    ack_word: str = option("ack", "what clients say to acknowledge an event")

    def __post_init__(self) -> None:
        check_options(self)
        known = set(FIXED_WORDS)
        for name in ("pub_word", "sub_word", "unsub_word", "ack_word"):
            word = getattr(self, name)
            if not (word.isprintable() and word and " " not in word):
                raise InvalidOption(name, word, "a word without spaces")
            if word in known:
                raise InvalidOption(name, word, "another word than other commands have")
            known.add(word)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlOptions:
    """Settings of the control gateway."""

    topic: str = option("tweets", "what a session shows")
    max_line_bytes: int = option(
        KIB, "longest line of a client; a longer one is no command", least=1
    )
    window: int = option(
        1_000, "events taken at once for a session", least=1, most=MAX_WINDOW
    )

    def __post_init__(self) -> None:
        check_options(self)
        _topic("topic", self.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """Settings of the JSON gateway, of both its ports."""

    max_line_bytes: int = option(
        MIB, "longest line of a client; a longer one is a dead letter", least=1
    )
    pub_tries: int = option(
        5,
        "how often PUB is sent to a consumer that does not answer; "
        "then it is unsubscribed, and its position kept",
        least=1,
    )
    pub_interval_s: float = option(10.0, "time from one PUB to the next try", above=0)
    pubrel_tries: int = option(
        5,
        "how often PUBREL is sent to a consumer that does not answer; "
        "then the message counts as received",
        least=1,
    )
    pubrel_interval_s: float = option(
        10.0, "time from one PUBREL to the next try", above=0
    )
    resume_on_login: bool = option(
        True, "whether a login resumes the topics of a user, or waits for a SUB"
    )
    login_attempts: int = option(
        5, "failed logins before a connection is closed", least=1
    )
    dead_letter_topic: str = option(
        "deadLetterChan", "topic that gets the lines that cannot be understood"
    )

    def __post_init__(self) -> None:
        check_options(self)
        _topic("dead_letter_topic", self.dead_letter_topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class MazeOptions:
    """Settings of the maze gateway, of both its ports."""

    max_line_bytes: int = option(
        64 * KIB,
        "longest line of a source or client; a longer one is a dead letter",
        least=1,
    )
    topic: str = option("maze", "topic that gets every event in order")
    hold_back: int = option(
        10_000, "events held back until the one in front of them comes", least=1
    )
    gap_s: float = option(
        5.0, "how long a missing event is waited for, before it is skipped", above=0
    )
    restart_window: int = option(
        128,
        "events of a new source held until number 1 comes and starts it afresh",
        least=1,
    )
    store_absent: bool = option(
        False,
        "whether events for clients that are not there are stored as dead letters, "
        "or only counted",
    )
    durability: Durability = option(
        "os",
        "when an event of the source is safe: `sync` on disk, `os` with the system",
        choices=("sync", "os"),
    )
    max_client_buffer_bytes: int = option(
        8 * MIB,
        "events kept for a client that does not read, before it is disconnected",
        least=1,
    )

    def __post_init__(self) -> None:
        check_options(self)
        _topic("topic", self.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttOptions:
    """Settings of the MQTT gateway, of all its ports."""

    max_packet_bytes: int = option(
        16 * MIB,
        "largest packet of a client; clients of version 5 are told",
        least=KIB,
        most=256 * MIB,
    )
    receive_maximum: int = option(
        1_000,
        "publishes of QoS 1 and 2 that a client of version 5 may have unanswered",
        least=1,
        most=0xFFFF,
    )
    topic_alias_maximum: int = option(
        100, "topic aliases that a client of version 5 may use", least=0, most=0xFFFF
    )
    send_aliases: int = option(
        100,
        "topic aliases used towards a client, if it allows as many",
        least=0,
        most=0xFFFF,
    )
    window: int = option(
        1_000,
        "deliveries of QoS 1 and 2 that a client may have unanswered, "
        "unless it asks for fewer",
        least=1,
        most=0x7FFF,
    )
    max_keep_alive_s: int = option(
        60,
        "longest keep-alive that a client of version 5 gets, whatever it asks for; "
        "0 for as long as it likes",
        least=0,
        most=0xFFFF,
    )
    max_session_s: float = option(
        0.0,
        "how long a session is kept without a connection at most; 0 for ever",
        least=0,
    )
    no_subscribe: str | None = option(
        None,
        "topic filters that no client may subscribe to over MQTT, separated by spaces",
    )
    share_order: str = option(
        "log",
        "how clients share events of $share/group/filter: log gives each event to any "
        "of them, key those of one key to one of them at a time, in order",
        choices=("log", "key"),
    )
    max_filters: int = option(
        10_000, "topic filters that one client may subscribe to", least=1
    )
    max_packet_filters: int = option(
        1_000,
        "topic filters in one SUBSCRIBE or UNSUBSCRIBE; a client that sends more has "
        "to go",
        least=1,
    )
    max_clients: int = option(
        1_000_000,
        "sessions that there may be, of clients that are there or not",
        least=1,
    )
    sys_interval_s: float = option(
        10.0, "time between two rounds of `$SYS` topics; 0 for none", least=0
    )

    def __post_init__(self) -> None:
        check_options(self)
        for one in self.refused_filters:
            try:
                check_filter(one)
            except InvalidName as error:
                limit = f"topic filters; {one} {error.reason}"
                raise InvalidOption("no_subscribe", self.no_subscribe, limit) from None

    @property
    def refused_filters(self) -> list[str]:
        """Those of ``no_subscribe``."""
        return [] if self.no_subscribe is None else self.no_subscribe.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeOptions:
    """Settings of the native gateway, which the commands and clients use."""

    max_message_bytes: int = option(64 * MIB, "largest message of a client", least=KIB)
    max_fetch_bytes: int = option(
        4 * MIB,
        "events in one answer to a fetch, unless a single batch is larger",
        least=KIB,
    )
    max_fetches: int = option(
        100, "fetches of one connection that may wait for their answers", least=1
    )

    def __post_init__(self) -> None:
        check_options(self)


def _topic(name: str, value: str) -> None:
    try:
        topic_name(value)
    except InvalidName as error:
        limit = f"a topic name; this one {error.reason}"
        raise InvalidOption(name, value, limit) from error
