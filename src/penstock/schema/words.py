"""Text that looks real: by the name of its property, or by its format."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

_FIRST = ("Ada", "Alan", "Barbara", "Edsger", "Grace", "Ken", "Margaret", "Radia")
_LAST = ("Dijkstra", "Hamilton", "Hopper", "Liskov", "Lovelace", "Perlman", "Turing")
_CITIES = ("Amsterdam", "Kyoto", "Lagos", "Lima", "Oslo", "Prague", "Seattle")
_COUNTRIES = ("CZ", "DE", "JP", "NG", "NL", "NO", "PE", "US")
_CURRENCIES = ("CHF", "EUR", "GBP", "JPY", "USD")
_STREETS = ("Canal Road", "Harbour Lane", "Mill Street", "Station Square")
_STATES = ("active", "cancelled", "done", "new", "paid", "pending", "shipped")
_COLOURS = ("amber", "blue", "green", "indigo", "red", "white")
_WORDS = (
    *("anchor", "basin", "bridge", "canal", "channel", "current", "dam", "delta"),
    *("drift", "estuary", "ferry", "flood", "flow", "ford", "gate", "harbour"),
    *("inlet", "lake", "lock", "marsh", "meadow", "mill", "pier", "pond", "quay"),
    *("rapids", "reach", "reservoir", "ripple", "river", "sluice", "spring"),
    *("stream", "tide", "turbine", "valve", "water", "weir"),
)
# Parts of the names of properties, and what stands there.
_NAMED: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("first", "given"), _FIRST),
    (("last", "family", "surname"), _LAST),
    (("city", "town", "place"), _CITIES),
    (("country",), _COUNTRIES),
    (("currency",), _CURRENCIES),
    (("street", "address"), _STREETS),
    (("status", "state"), _STATES),
    (("colour", "color"), _COLOURS),
)
_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)


def text_for(name: str, random: Random) -> str:
    """Some text for a property of that name."""
    lowered = name.lower()
    if "mail" in lowered:
        return _email(random)
    for parts, choices in _NAMED:
        if any(part in lowered for part in parts):
            return random.choice(choices)
    if lowered.endswith("name") or lowered in ("customer", "user", "author"):
        return f"{random.choice(_FIRST)} {random.choice(_LAST)}"
    if lowered == "id" or lowered.endswith(("_id", "key", "code", "sku")):
        return f"{word(random)[:3].upper()}-{random.randint(1000, 9999)}"
    return words(random, random.randint(1, 3))


def words(random: Random, count: int) -> str:
    return " ".join(random.choice(_WORDS) for _ in range(count))


def word(random: Random) -> str:
    return random.choice(_WORDS)


def formatted(format_: str, random: Random) -> str | None:
    """Some text of a format; None for a format that is not known."""
    made = _FORMATS.get(format_)
    return None if made is None else made(random)


def _moment(random: Random) -> datetime:
    return _EPOCH + timedelta(seconds=random.randint(0, 3 * 365 * 86_400))


def _date_time(random: Random) -> str:
    return _moment(random).isoformat().replace("+00:00", "Z")


def _email(random: Random) -> str:
    return f"{random.choice(_FIRST)}.{random.choice(_LAST)}@example.com".lower()


def _uri(random: Random) -> str:
    return f"https://example.com/{word(random)}/{random.randint(1, 999)}"


def _uuid(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128), version=4))


def _ipv4(random: Random) -> str:
    return f"192.0.2.{random.randint(1, 254)}"


def _ipv6(random: Random) -> str:
    return f"2001:db8::{random.randint(1, 0xFFFF):x}"


def _duration(random: Random) -> str:
    return f"PT{random.randint(1, 3600)}S"


def _hostname(random: Random) -> str:
    return f"{word(random)}.example.com"


def _pointer(random: Random) -> str:
    return f"/{word(random)}/{random.randint(0, 9)}"


def base64_text(random: Random, least: int, most: int | None) -> str | None:
    """Some bytes in base64, of so many characters; None if there are none."""
    fewest = -(-least // 4)  # groups of four characters, for three bytes each
    greatest = fewest + 7 if most is None else min(fewest + 7, most // 4)
    if greatest < fewest:
        return None
    return b64encode(random.randbytes(3 * random.randint(fewest, greatest))).decode()


_FORMATS: dict[str, Callable[[Random], str]] = {
    "date": lambda random: _moment(random).date().isoformat(),
    "date-time": _date_time,
    "decimal": lambda random: f"{random.randint(0, 999)}.{random.randint(0, 99):02}",
    "duration": _duration,
    "email": _email,
    "hostname": _hostname,
    "idn-email": _email,
    "idn-hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "iri": _uri,
    "iri-reference": _uri,
    "json-pointer": _pointer,
    "local-date-time": lambda random: _date_time(random)[:-1],
    "partial-time": lambda random: _date_time(random)[11:-1],
    "regex": lambda random: f"^{word(random)}$",
    "relative-json-pointer": lambda random: f"{random.randint(0, 3)}{_pointer(random)}",
    "time": lambda random: _date_time(random)[11:],
    "uri": _uri,
    "uri-reference": _uri,
    "uri-template": lambda random: f"{_uri(random)}/{{id}}",
    "uuid": _uuid,
}
