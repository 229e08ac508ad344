"""``penstock dead-letters export-test``: a failing test out of a dead letter.

The test hands the event to the handler that failed with it, through
``penstock.testing``, and fails as long as the handler does.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from penstock.cli import show
from penstock.cli.connect import ask, at_desk, server_options
from penstock.cli.letter_options import NUMBER
from penstock.cli.output import say, say_text
from penstock.cli.refusal import Refusal
from penstock.desk.views.events import EventView
from penstock.desk.views.letters import LetterView
from penstock.model.event import OPTIONAL

WIDTH = 88

_FILE = re.compile(r'^ *File "([^"]+)", line \d+', re.MULTILINE)
# Code that is not the user's.
_FOREIGN = re.compile(r"(^|/)(penstock|site-packages|lib/python3[.\d]*)/|^<")
_TEMPLATE = """\
\"\"\"Dead letter {number}: {subscriber} failed with an event of {topic}.

{error}
\"\"\"

from __future__ import annotations

from penstock.model.event import Event
from penstock.testing import replay

# isort: split
# Guessed: this has to be the domain whose handler failed.
from {module} import {domain}

PAYLOAD = {payload}
EVENT = Event(
{fields}
)


def test_{name}() -> None:
    \"\"\"It fails as long as the handler does.\"\"\"
    replay({domain}, EVENT.topic, EVENT)
"""


@click.command("export-test")
@click.argument("number", metavar="NUMBER", type=NUMBER)
@click.option("--out", metavar="FILE", help="Write it there; default: standard output.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@server_options
def export_test_command(
    number: int, out: str | None, *, force: bool, **_: object
) -> None:
    """Write a failing test: the event of a dead letter, handled again.

    The import of the domain is guessed from the traceback: correct it.

    \b
    Example:
      penstock dead-letters export-test 17 --out tests/test_dead_letter_17.py
    """
    with at_desk() as desk:
        letter = ask(desk, LetterView, "dead-letters.show", number=number)
    if letter.event is None or letter.topic is None or letter.subscriber is None:
        raise Refusal(f"dead letter {number} has no event that could be handled again")
    text = written(letter, letter.event)
    if out is None:
        say_text(text, nl=False)
        return
    mode = "w" if force else "x"
    try:
        with Path(out).open(mode, encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Refusal(f"{out} is there already", "say --force to replace it") from None
    say(f"wrote {out}; correct its import, then: pytest {out}", err=True)


def written(letter: LetterView, event: EventView) -> str:
    """The text of the test; it is as formatters and type checkers want it."""
    topic, subscriber = letter.topic or "", letter.subscriber or ""
    words = ("dead", "letter", str(letter.number), subscriber, topic)
    payload, is_json = _payload(event.payload)
    return _TEMPLATE.format(
        number=letter.number,
        subscriber=_harmless(subscriber),
        topic=_harmless(topic),
        error=_harmless(letter.reason),
        module=_module(letter),
        domain=_identifier(subscriber),
        payload=payload,
        fields="\n".join(_fields(topic, event, is_json=is_json)),
        name="_".join(re.sub(r"\W+", "_", word).strip("_").lower() for word in words),
    )


def _payload(payload: bytes) -> tuple[str, bool]:
    """A literal, and whether it is JSON text: that can be read, and changed."""
    try:
        payload.decode()
        text = msgspec.json.format(payload, indent=2).decode()
    except (ValueError, RecursionError):
        return _bytes(payload), False
    # JSON has no three quotation marks in a row, and no bare backslash at its end.
    return f'r"""\n{text}\n"""', True


def _fields(topic: str, event: EventView, *, is_json: bool) -> Iterator[str]:
    yield f"    topic={_text(topic)},"
    yield f"    offset={event.offset},"
    yield f"    id={_text(event.id)},"
    yield f"    timestamp_ms={event.timestamp},"
    yield f"    payload={'PAYLOAD.strip().encode()' if is_json else 'PAYLOAD'},"
    for field in OPTIONAL:
        value = getattr(event, field.name)
        if field.name == "id" or value is None or value == field.blank:
            continue
        match field.kind:
            case "map":
                yield from _headers(value)
            case "bytes":
                yield f"    {field.attribute}={_bytes(value)},"
            case "text":
                yield f"    {field.attribute}={_text(value)},"
            case _:
                yield f"    {field.attribute}={value},"


def _headers(headers: dict[str, str]) -> Iterator[str]:
    pairs = [f"{_text(name)}: {_text(value)}" for name, value in headers.items()]
    line = f"    headers={{{', '.join(pairs)}}},"
    if len(line) <= WIDTH:
        yield line
        return
    yield "    headers={"
    yield from (f"        {pair}," for pair in pairs)
    yield "    },"


def _text(value: str) -> str:
    return _quoted(repr(value))


def _bytes(value: bytes) -> str:
    return "b" + _quoted(repr(value)[1:])


def _quoted(literal: str) -> str:
    """A literal of Python in the quotation marks that formatters prefer."""
    inner = literal[1:-1]
    if literal[0] == "'" and '"' not in inner:
        return f'"{inner}"'
    return literal


def _harmless(text: str) -> str:
    """Text on one line that cannot end a docstring."""
    line = show.preview(text.encode(errors="replace"))
    return line.replace("\\", "\\\\").replace('"', "'")


def _module(letter: LetterView) -> str:
    """The module that the last traceback ends in, leaving out what is not theirs."""
    for one in reversed(letter.failures):
        files = [file for file in _FILE.findall(one.traceback) if _is_theirs(file)]
        if files:
            return _dotted(Path(files[-1]))
    return "your_app"


def _is_theirs(file: str) -> bool:
    return _FOREIGN.search(file) is None


def _dotted(path: Path) -> str:
    """A file as a module; it ran elsewhere, perhaps, and its sources are here."""
    names = path.with_suffix("").parts
    known = [at for at in range(1, len(names)) if _is_here(path.parts[at:])]
    if known:
        names = names[known[0] :]
    elif "src" in names:
        names = names[names.index("src") + 1 :]
    else:
        names = names[-1:]
    if names and names[-1] in ("__init__", "__main__"):
        names = names[:-1]
    return ".".join(map(_identifier, names)) or "your_app"


def _is_here(parts: tuple[str, ...]) -> bool:
    roots = (Path.cwd(), Path.cwd() / "src")
    return parts[0] != "src" and any(root.joinpath(*parts).is_file() for root in roots)


def _identifier(text: str) -> str:
    """Something that can be a name in Python."""
    name = re.sub(r"\W+", "_", text).strip("_") or "domain"
    if name[0].isdigit() or keyword.iskeyword(name):
        return f"_{name}"
    return name
