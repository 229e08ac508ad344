"""Strings that match a regular expression, for expressions that are simple.

    alternatives   ab|cd            groups     (ab) (?:ab) (?P<name>ab)
    characters     a . \\d \\w \\s \\D \\W \\S [a-z_] [^a-z] \\. \\x41 \\u0041
    repetition     ? * + {3} {2,5} {2,}, also lazy
    anchors        ^ at the beginning, $ at the end

Everything else (look-around, back references, properties) is refused.
"""

from __future__ import annotations

import string
from random import Random

# Of what may be repeated without end.
_MORE = 5
_MOST = 1000
_DIGITS = string.digits
_WORD = string.ascii_letters + string.digits + "_"
_SPACE = " "
_PRINTABLE = [chr(code) for code in range(0x20, 0x7F)]
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_META = set("\\^$.|?*+()[]{}/-#&~ '\"<>=!:,@%_;`")


class NotSimple(Exception):
    """An expression that is not understood; the text says what."""


def matching(pattern: str, random: Random) -> str:
    """A string that matches the expression; raises NotSimple."""
    maker = _Maker(pattern, random)
    text = maker.alternatives()
    if maker.rest:
        raise NotSimple(f"{maker.rest[0]} at {maker.at}")
    return text


class _Maker:
    """Reads the expression and makes a match on the way."""

    def __init__(self, pattern: str, random: Random) -> None:
        self._pattern = pattern
        self._random = random
        self.at = 0

    @property
    def rest(self) -> str:
        return self._pattern[self.at :]

    def alternatives(self) -> str:
        """``a|b|c``: one of them, whatever comes behind the others."""
        made = [self._sequence()]
        while self._accept("|"):
            made.append(self._sequence())
        return self._random.choice(made)

    def _sequence(self) -> str:
        made = []
        while self.rest and self.rest[0] not in "|)":
            made.append(self._repeated())
        return "".join(made)

    def _repeated(self) -> str:
        """An atom is made anew each time, from the same place of the expression."""
        begin = self.at
        text = self._atom()
        least, most = self._quantifier()
        end = self.at
        if (least, most) == (1, 1):
            return text
        made = []
        for _ in range(self._random.randint(least, most)):
            self.at = begin
            made.append(self._atom())
        self.at = end
        return "".join(made)

    def _quantifier(self) -> tuple[int, int]:
        least, most = 1, 1
        if self._accept("?"):
            least, most = 0, 1
        elif self._accept("*"):
            least, most = 0, _MORE
        elif self._accept("+"):
            least, most = 1, _MORE
        elif self.rest[:1] == "{":
            least, most = self._counts()
        else:
            return least, most
        self._accept("?")  # lazy is the same here
        if self.rest[:1] == "+" or most > _MOST:
            raise NotSimple("that many repetitions")
        return least, most

    def _counts(self) -> tuple[int, int]:
        inside, brace, _ = self.rest[1:].partition("}")
        low, comma, high = inside.partition(",")
        if not brace or not low.isdigit() or not (high.isdigit() or not high):
            raise NotSimple("{")
        self.at += len(inside) + 2
        least = int(low)
        if not comma:
            return least, least
        return least, int(high) if high else least + _MORE

    def _atom(self) -> str:
        character = self.rest[0]
        self.at += 1
        if character == "(":
            return self._group()
        if character == "[":
            return self._random.choice(self._set())
        if character == ".":
            return self._random.choice(_WORD)
        if character == "\\":
            return self._random.choice(self._escape())
        if character == "^":
            if self.at > 1 and self._pattern[self.at - 2] not in "(|:":
                raise NotSimple("^ in the middle")
            return ""
        if character == "$":
            if self.rest and self.rest[0] not in ")|":
                raise NotSimple("$ in the middle")
            return ""
        if character in "*+?{":
            raise NotSimple(character)
        return character

    def _group(self) -> str:
        if self._accept("?"):
            if self._accept("P<"):
                self.at += self.rest.index(">") + 1 if ">" in self.rest else 0
            elif not self._accept(":"):
                raise NotSimple("(?" + self.rest[:1])
        text = self.alternatives()
        if not self._accept(")"):
            raise NotSimple("( without )")
        return text

    def _set(self) -> list[str]:
        negated = self._accept("^")
        inside: set[str] = set()
        first = True
        while first or self.rest[:1] != "]":
            if not self.rest or self.rest[:1] == "[" or self.rest[:2] in ("&&", "--"):
                raise NotSimple("[")
            first = False
            found = self._of_set()
            if self.rest[:1] == "-" and self.rest[1:2] not in ("", "]"):
                self.at += 1
                found = _between(found, self._of_set())
            inside.update(found)
        self.at += 1
        chosen = [one for one in _PRINTABLE if one not in inside] if negated else inside
        if not chosen:
            raise NotSimple("an empty set")
        return sorted(chosen)

    def _of_set(self) -> str:
        character = self.rest[0]
        self.at += 1
        return self._escape() if character == "\\" else character

    def _escape(self) -> str:
        """The characters behind a backslash."""
        letter = self.rest[:1]
        self.at += 1
        if letter in _CLASSES and letter:
            return _CLASSES[letter]
        if letter.lower() in _CLASSES and letter:
            away = _CLASSES[letter.lower()]
            return "".join(one for one in _PRINTABLE if one not in away)
        if letter in _CONTROLS and letter:
            return _CONTROLS[letter]
        if letter in _META and letter:
            return letter
        width = {"x": 2, "u": 4}.get(letter, 0)
        digits = self.rest[:width]
        if width and len(digits) == width and not set(digits) - set(string.hexdigits):
            self.at += width
            return chr(int(digits, 16))
        raise NotSimple("\\" + letter)

    def _accept(self, text: str) -> bool:
        found = self.rest.startswith(text)
        self.at += len(text) * found
        return found


def _between(low: str, high: str) -> str:
    if len(low) != 1 or len(high) != 1 or low > high:
        raise NotSimple(f"[{low}-{high}]")
    return "".join(map(chr, range(ord(low), ord(high) + 1)))
