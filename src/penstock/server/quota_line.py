"""The quota of a user in a users file: ``anna has connections=10 stored_bytes=10GiB``.

One line for each user who has one; what is not named is as the settings say.
"""

from __future__ import annotations

from penstock.access.quota import NAMES, SIZES, Quota
from penstock.errors import InvalidOption
from penstock.model.size import read_int, read_size, size_text

HAS = "has"


def is_quota(line: str) -> bool:
    """Whether a line is a quota: a user's has a ``:`` where this has white space."""
    return line.split(maxsplit=2)[1:2] == [HAS]


def parse(line: str) -> tuple[str, Quota]:
    """User and quota of a line that is one; raises ValueError."""
    name, _, *said = line.split()
    limits: dict[str, int] = {}
    for one in said:
        key, _, text = one.partition("=")
        if key in limits:
            raise ValueError(f"{key} is there twice")
        limits[key] = limit(key, text)
    if not limits:
        raise ValueError(f"after {HAS} comes {' or '.join(f'{n}=…' for n in NAMES)}")
    return name, made(limits)


def limit(name: str, text: str) -> int:
    """The limit that a text says; raises ValueError."""
    if name not in NAMES:
        raise ValueError(f"{name} is no quota, those are {', '.join(NAMES)}")
    value = read_size(text) if name in SIZES else read_int(text)
    if value is None:
        kind = "a size like 64KiB or 1GiB" if name in SIZES else "a whole number"
        raise ValueError(f"{name} is {text!r}: must be {kind}")
    return value


def made(limits: dict[str, int]) -> Quota:
    """A quota of these limits; raises ValueError."""
    try:
        return Quota(**limits)
    except InvalidOption as error:
        raise ValueError(str(error)) from None


def words(quota: Quota) -> list[str]:
    """What is limited, as ``name=limit``."""
    return [
        f"{name}={size_text(said) if name in SIZES else said}"
        for name, said in quota.limits.items()
    ]


def rendered(name: str, quota: Quota) -> str:
    """The line of a quota that limits something."""
    return " ".join([name, HAS, *words(quota)])
