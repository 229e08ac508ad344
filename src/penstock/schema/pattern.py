"""Strings that match a regular expression, for expressions that are simple.

    alternatives   ab|cd            groups     (ab) (?:ab) (?P<name>ab)
    characters     a . \\d \\w \\s \\D \\W \\S [a-z_] [^a-z] \\. \\x41 \\u0041
    repetition     ? * + {3} {2,5} {2,}, also lazy
    anchors        ^ at the beginning, $ at the end

Everything else (look-around, back references, properties) is refused. An expression is
read once. What is made of it has the length that is asked for, as far as every part can
be of any length between its shortest and its longest.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from penstock.schema.effort import Effort

# Characters of a string that is made.
MAX_CHARACTERS = 10_000
# Of what may be repeated without end, unless a length asks for more.
_MORE = 5
_MOST = 1000
# Groups within groups.
_MAX_DEPTH = 50
# Characters of one range that are made; of a longer one, the first.
_MAX_RANGE = 256
# Of "{2,5}", in characters.
_LONGEST_COUNT = 20
_WORD = string.ascii_letters + string.digits + "_"
_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F))
_CLASSES = {"d": string.digits, "w": _WORD, "s": " "}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_META = set("\\^$.|?*+()[]{}/-#&~ '\"<>=!:,@%_;`")


class NotSimple(Exception):
    """An expression that is not understood; the text says what."""


def matching(
    pattern: str,
    random: Random,
    least: int = 0,
    most: int = MAX_CHARACTERS,
    effort: Effort | None = None,
) -> str:
    """A string that matches, if possible of so many characters; raises NotSimple."""
    return Pattern(pattern, effort or Effort()).made(random, least, most)


class Pattern:
    """An expression that was read."""

    def __init__(self, pattern: str, effort: Effort) -> None:
        """Raises NotSimple, TooMuchWork."""
        self._effort = effort
        effort.spend(len(pattern))
        reader = _Reader(pattern)
        self._whole = reader.alternatives(0)
        if reader.next:
            raise NotSimple(f"{reader.next} at {reader.at}")

    def made(self, random: Random, least: int, most: int) -> str:
        """A string that matches, of so many characters if it can be."""
        most = min(most, MAX_CHARACTERS)
        if self._whole.least > MAX_CHARACTERS:
            raise NotSimple(f"more than {MAX_CHARACTERS} characters")
        return self._whole.make(least, most, random, self._effort)


class _PatternPart:
    """Makes strings of ``least`` to ``most`` characters; here: one of a set."""

    def __init__(self, characters: str) -> None:
        self._characters = characters
        self.least = self.most = 1 if characters else 0

    def make(self, least: int, most: int, random: Random, effort: Effort) -> str:
        effort.spend()
        return random.choice(self._characters) if self._characters else ""


class _Choice(_PatternPart):
    def __init__(self, branches: Sequence[_PatternPart]) -> None:
        self._branches = branches
        self.least = min(one.least for one in branches)
        self.most = max(one.most for one in branches)

    def make(self, least: int, most: int, random: Random, effort: Effort) -> str:
        effort.spend(len(self._branches))
        fitting = [
            one for one in self._branches if one.least <= most and one.most >= least
        ]
        chosen = random.choice(fitting or self._branches)
        return chosen.make(least, most, random, effort)


class _Row(_PatternPart):
    def __init__(self, parts: Sequence[_PatternPart]) -> None:
        self._parts = parts
        self.least = sum(one.least for one in parts)
        self.most = sum(one.most for one in parts)
        self._behind = [
            *zip(
                accumulate((-one.least for one in parts), initial=self.least),
                accumulate((-one.most for one in parts), initial=self.most),
                strict=True,
            )
        ][1:]

    def make(self, least: int, most: int, random: Random, effort: Effort) -> str:
        made: list[str] = []
        for part, (fewest, greatest) in zip(self._parts, self._behind, strict=True):
            made.append(part.make(least - greatest, most - fewest, random, effort))
            least, most = least - len(made[-1]), most - len(made[-1])
        return "".join(made)


class _Repeated(_PatternPart):
    def __init__(self, part: _PatternPart, low: int, high: int | None) -> None:
        self._part = part
        self._low = low
        self._high = low + _MORE if high is None else high
        self._most = max(MAX_CHARACTERS, low) if high is None else high
        self.least = low * part.least
        self.most = self._most * part.most

    def make(self, least: int, most: int, random: Random, effort: Effort) -> str:
        part, count = self._part, self._count(least, most, random)
        effort.spend(1 + count)
        made: list[str] = []
        for left in range(count - 1, -1, -1):
            fewest, greatest = left * part.least, left * part.most
            made.append(part.make(least - greatest, most - fewest, random, effort))
            least, most = least - len(made[-1]), most - len(made[-1])
        return "".join(made)

    def _count(self, least: int, most: int, random: Random) -> int:
        """How often: as it is said, and so that the length can be met."""
        part, low, high = self._part, self._low, self._high
        if part.most:
            low = max(low, min(-(-least // part.most), self._most))
        high = max(high, low)
        if part.least:
            high = max(self._low, min(high, most // part.least))
        return random.randint(min(low, high), high)


class _Reader:
    """Takes an expression apart."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0

    @property
    def next(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def alternatives(self, depth: int) -> _PatternPart:
        """``a|b|c``"""
        if depth > _MAX_DEPTH:
            raise NotSimple("groups in groups")
        found = [self._sequence(depth)]
        while self._accept("|"):
            found.append(self._sequence(depth))
        return found[0] if len(found) == 1 else _Choice(found)

    def _sequence(self, depth: int) -> _PatternPart:
        found = []
        while self.next and self.next not in "|)":
            found.append(self._repeated(depth))
        return _Row(found)

    def _repeated(self, depth: int) -> _PatternPart:
        part = self._atom(depth)
        least, most = self._quantifier()
        return part if (least, most) == (1, 1) else _Repeated(part, least, most)

    def _quantifier(self) -> tuple[int, int | None]:
        least: int
        most: int | None
        if self._accept("?"):
            least, most = 0, 1
        elif self._accept("*"):
            least, most = 0, None
        elif self._accept("+"):
            least, most = 1, None
        elif self.next == "{":
            least, most = self._counts()
        else:
            return 1, 1
        self._accept("?")  # lazy is the same here
        if self.next == "+" or max(least, most or 0) > _MOST:
            raise NotSimple("that many repetitions")
        return least, most

    def _counts(self) -> tuple[int, int | None]:
        end = self._pattern.find("}", self.at, self.at + _LONGEST_COUNT)
        low, comma, high = self._pattern[self.at + 1 : max(end, 0)].partition(",")
        if not low.isdecimal() or not (high.isdecimal() or not high):
            raise NotSimple("{")
        self.at = end + 1
        if not comma:
            return int(low), int(low)
        if high and int(high) < int(low):
            raise NotSimple("{")
        return int(low), int(high) if high else None

    def _atom(self, depth: int) -> _PatternPart:
        character = self.next
        self.at += 1
        if character == "(":
            return self._group(depth + 1)
        if character == "[":
            return _PatternPart(self._set())
        if character == ".":
            return _PatternPart(_WORD)
        if character == "\\":
            return _PatternPart(self._escape())
        if character == "^":
            if self.at > 1 and self._pattern[self.at - 2] not in "(|:":
                raise NotSimple("^ in the middle")
            return _PatternPart("")
        if character == "$":
            if self.next and self.next not in ")|":
                raise NotSimple("$ in the middle")
            return _PatternPart("")
        if character in "*+?{":
            raise NotSimple(character)
        return _PatternPart(character)

    def _group(self, depth: int) -> _PatternPart:
        if self._accept("?"):
            if self._accept("P<"):
                self.at = self._pattern.find(">", self.at) + 1 or len(self._pattern)
            elif not self._accept(":"):
                raise NotSimple("(?" + self.next)
        found = self.alternatives(depth)
        if not self._accept(")"):
            raise NotSimple("( without )")
        return found

    def _set(self) -> str:
        negated = self._accept("^")
        inside: list[tuple[str, str]] = []
        while not inside or self.next != "]":
            two = self._pattern[self.at : self.at + 2]
            if not two or two[0] == "[" or two in ("&&", "--"):
                raise NotSimple("[")
            inside += self._of_set()
        self.at += 1
        if negated:
            chosen = [
                one
                for one in _PRINTABLE
                if not any(low <= one <= high for low, high in inside)
            ]
        else:
            chosen = sorted({one for pair in inside for one in _between(*pair)})
        if not chosen:
            raise NotSimple("an empty set")
        return "".join(chosen)

    def _of_set(self) -> list[tuple[str, str]]:
        """Ranges, of one character or more."""
        found = self._of_range()
        two = self._pattern[self.at : self.at + 2]
        if two[:1] != "-" or two[1:] in ("", "]"):
            return [(one, one) for one in found]
        self.at += 1
        high = self._of_range()
        if len(found) != 1 or len(high) != 1 or found > high:
            raise NotSimple(f"[{found}-{high}]")
        return [(found, high)]

    def _of_range(self) -> str:
        character = self.next
        self.at += 1
        return self._escape() if character == "\\" else character

    def _escape(self) -> str:
        """The characters behind a backslash."""
        letter = self.next
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
        digits = self._pattern[self.at : self.at + width]
        if width and len(digits) == width and not set(digits) - set(string.hexdigits):
            self.at += width
            return _character(int(digits, 16))
        raise NotSimple("\\" + letter)

    def _accept(self, text: str) -> bool:
        found = self._pattern.startswith(text, self.at)
        self.at += len(text) * found
        return found


def _between(low: str, high: str) -> str:
    last = min(ord(high), ord(low) + _MAX_RANGE - 1)
    return "".join(map(_character, range(ord(low), last + 1)))


def _character(code: int) -> str:
    if 0xD800 <= code < 0xE000:
        raise NotSimple("half of a pair of surrogates")
    return chr(code)
