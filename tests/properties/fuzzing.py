"""Mutated inputs for codecs: how they are made, and what every codec has to keep.

An input is one of a corpus, or two of them, with a few changes: bits flipped, bytes
put in, left out or doubled, numbers at their limits, ends cut off, depth. Everything
comes from a seed. A codec gives values or one of its documented errors, and nothing
else; one that reads a stream gives the same however the stream is cut, and holds no
more than its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

# Inputs between two that are looked at cut into pieces as well.
CUT_EVERY = 16
# Longer ones are cut off: codecs are to be met often, not fed much.
MAX_INPUT_BYTES = 4096
MOST_CHANGES = 4
DEEP_RATE = 0.003
NUMBERS = [
    *(b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x7f\xff", b"\0\0\0\0"),
    *(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\x80\x80\0"),
    *(b"-1", b"0", b"256", b"65536", b"9223372036854775808", b"1e999", b"9" * 30),
]
WORDS = [
    *(b"\n", b"\r\n", b"\r", b" ", b"|", b"/", b"#", b"+", b"$share/", b":", b'"'),
    *(b"{", b"}", b"[", b"]", b",", b"null", b"\\u0000", b"\\ud800", b"\xed\xa0\x80"),
    *(b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80", b"\xc0\x80", b"\\"),
]
# Deeper than a decoder may follow; rarely, as it is large.
DEEP = [b"[" * 3000, b'{"":' * 1010, b'{"a":' + b"[" * 3000, b"\x91" * 3000]

Outcome = object
"""What can be compared: all that came out, an error included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A codec, and what it is fed with.

    ``run`` takes the pieces of one input. ``errors`` are those that it documents;
    ``streams``: it gives the same however an input is cut.
    """

    name: str
    corpus: Sequence[bytes]
    run: Callable[[Sequence[bytes]], Outcome]
    errors: tuple[type[Exception], ...] = ()
    streams: bool = False


class Found(AssertionError):
    """A codec did what it must not, with what is needed to see it again."""

    def __init__(self, target: str, seed: int, number: int, data: bytes, what: str):
        super().__init__(
            f"{target}: {what}\nseed {seed}, input {number}: {data.hex()} {data[:80]!r}"
        )


def fuzz(target: Target, seed: int, count: int) -> None:
    """Feed a codec with so many inputs; raises Found for the first it is wrong about.

    The inputs are those of ``target.name`` and ``seed``, always the same.
    """
    random = Random(f"{target.name} {seed}")
    for number in range(count):
        data = mutated(random, target.corpus)
        try:
            whole = outcome(target, [data])
            if number % CUT_EVERY == 0 and target.streams:
                _compare(target, whole, pieces(random, data))
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise Found(target.name, seed, number, data, what) from error


def outcome(target: Target, data: Sequence[bytes]) -> Outcome:
    """What comes of an input; an error that is documented is as good as a value."""
    try:
        return target.run(data)
    except target.errors as error:
        return type(error), str(error)


def _compare(target: Target, whole: Outcome, cut: list[bytes]) -> None:
    again = outcome(target, cut)
    assert again == whole, f"{whole!r} became {again!r}, cut {list(map(len, cut))}"


def mutated(random: Random, corpus: Sequence[bytes]) -> bytes:
    """One input."""
    data = bytearray(corpus[int(random.random() * len(corpus))])
    for _ in range(1 + int(random.random() * MOST_CHANGES)):
        change = CHANGES[int(random.random() * len(CHANGES))]
        at = int(random.random() * (len(data) + 1))
        change(random, data, at, corpus)
    if random.random() < DEEP_RATE:
        deep = DEEP[int(random.random() * len(DEEP))]
        at = int(random.random() * (len(data) + 1)) if random.random() < 0.5 else 0
        data[at:at] = deep
    return bytes(data[:MAX_INPUT_BYTES])


def pieces(random: Random, data: bytes) -> list[bytes]:
    """The same in a few pieces, or byte by byte."""
    if len(data) < 64 and random.random() < 0.2:
        return [data[at : at + 1] for at in range(len(data))]
    places = sorted(int(random.random() * (len(data) + 1)) for _ in range(3))
    ends = [*places, len(data)]
    return [data[a:b] for a, b in zip([0, *places], ends, strict=True)]


# Changes of ``data`` at a place


def _flip(random: Random, data: bytearray, at: int, _: Sequence[bytes]) -> None:
    if at < len(data):
        data[at] ^= 1 << int(random.random() * 8)


def _set(random: Random, data: bytearray, at: int, _: Sequence[bytes]) -> None:
    if at < len(data):
        data[at] = int(random.random() * 256)


def _insert(random: Random, data: bytearray, at: int, _: Sequence[bytes]) -> None:
    data[at:at] = random.randbytes(1 + int(random.random() * 8))


def _delete(random: Random, data: bytearray, at: int, _: Sequence[bytes]) -> None:
    del data[at : at + 1 + int(random.random() * 8)]


def _double(random: Random, data: bytearray, at: int, _: Sequence[bytes]) -> None:
    part = data[at : at + 1 + int(random.random() * 32)]
    data[at:at] = part * (1 + int(random.random() * 3))


def _number(random: Random, data: bytearray, at: int, _: Sequence[bytes]) -> None:
    number = NUMBERS[int(random.random() * len(NUMBERS))]
    data[at : at + len(number)] = number


def _word(random: Random, data: bytearray, at: int, _: Sequence[bytes]) -> None:
    data[at:at] = WORDS[int(random.random() * len(WORDS))]


def _truncate(_: Random, data: bytearray, at: int, __: Sequence[bytes]) -> None:
    del data[at:]


def _splice(random: Random, data: bytearray, at: int, corpus: Sequence[bytes]) -> None:
    other = corpus[int(random.random() * len(corpus))]
    data[at:] = other[int(random.random() * (len(other) + 1)) :]


def _follow(random: Random, data: bytearray, at: int, corpus: Sequence[bytes]) -> None:
    data += corpus[int(random.random() * len(corpus))]


CHANGES = [
    *(_flip, _set, _insert, _delete, _double, _number, _word, _truncate),
    *(_splice, _follow),
]
