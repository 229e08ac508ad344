"""How words feel: the AFINN-111 list, as the original server of tweets gives it out.

The list of the package ``afinn`` has 2 477 entries, the original one 2 476: one entry
of -3 is missing there. Which one is not known; here it is "can't stand". No score
depends on that, as entries with a space never match a word.

AFINN is by Finn Årup Nielsen, under the Open Database License (ODbL) 1.0.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from penstock.errors import MissingExtra

_MISSING = "can't stand"


@cache
def emotion_values() -> dict[str, int]:
    """Word -> -5 to 5, in the order of the list. Raises MissingExtra."""
    try:
        text = (files("afinn") / "data" / "AFINN-111.txt").read_text("utf-8")
    except ModuleNotFoundError as error:
        raise MissingExtra("AFINN", "afinn", "pipeline") from error
    rows = (line.split("\t") for line in text.splitlines())
    values = {word: int(value) for word, value in rows}
    del values[_MISSING]
    return values


def as_text() -> str:
    """One line for each: the word, a tab, its value."""
    return "".join(f"{word}\t{value}\r\n" for word, value in emotion_values().items())
