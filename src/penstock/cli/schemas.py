"""``penstock schemas``: what payloads of topics look like, and data that looks so."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    as_json,
    ask,
    ask_all,
    at_desk,
    connected,
    json_option,
    server_options,
    show_json,
    show_rows,
    who,
)
from penstock.cli.output import say, write_line
from penstock.cli.refusal import Refusal
from penstock.desk.views.schemas import (
    CheckView,
    ModeView,
    SchemaDone,
    SchemaPage,
    SchemaRow,
    SchemaView,
    VersionRow,
)
from penstock.schema import MODES, canonical, mock, name_of, parsed, schema_of

# Far more than any server takes.
MAX_BYTES = 16 << 20


class Given(NamedTuple):
    """A schema, and what its type is called."""

    schema: bytes
    type: str


def given_schema(text: str) -> Given:
    """The schema that an argument names; raises Refusal, InvalidSchema."""
    if text == "-":
        return Given(canonical(parsed(sys.stdin.buffer.read(MAX_BYTES))), "")
    path = Path(text)
    if path.is_file() or ":" not in text:
        with path.open("rb") as file:
            return Given(canonical(parsed(file.read(MAX_BYTES))), "")
    return _of_type(text)


def _of_type(text: str) -> Given:
    module, _, name = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as "python -m" has it
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        hint = "say it as FILE, - or MODULE:TYPE, like shop.events:Order"
        raise Refusal(f"{text}: {error}", hint) from error
    schema = schema_of(found)
    if schema is None:
        raise Refusal(f"{text} is raw bytes: it has no schema")
    return Given(schema, name_of(found))


TOPIC = click.argument("topic", metavar="TOPIC")
MODE = click.option(
    "--mode",
    type=click.Choice(MODES),
    help="How it has to agree with the version before. Default: as registered.",
)
VERSION = click.option(
    "--version", type=click.IntRange(1), metavar="N", help="Default: the latest one."
)
# Documents that are published or checked together.
_BATCH = 100
_PART_BYTES = 1 << 20
_HEADINGS = ("TOPIC", "VERSION", "MODE", "TYPE", "SINCE", "BY")


@click.group()
@server_options
@json_option("Print JSON.")
def schemas(**_: object) -> None:
    """Say what payloads of a topic look like: versions of a JSON Schema.

    What does not fit the latest version is refused when it is published.

    \b
    Examples:
      penstock schemas register orders order.schema.json
      penstock schemas register orders shop.events:Order
      penstock schemas mock orders --count 10
    """


@schemas.command("list")
@server_options
@json_option("Print one JSON array.")
def list_command(**_: object) -> None:
    """List the topics that have a schema.

    \b
    Example:
      penstock schemas list
    """
    with at_desk() as desk:
        found = ask_all(
            desk,
            SchemaPage,
            "schemas",
            lambda page: page.schemas,
            lambda row: row.topic,
        )
    show_rows(
        found, _HEADINGS, _row, "no schemas yet: penstock schemas register TOPIC FILE"
    )


@schemas.command("show")
@TOPIC
@VERSION
@server_options
@json_option("Print one JSON object.")
def show_command(topic: str, version: int | None, **_: object) -> None:
    """Show the schema of a topic and its versions.

    \b
    Examples:
      penstock schemas show orders
      penstock schemas show orders --version 1 --json
    """
    with at_desk() as desk:
        found = ask(desk, SchemaView, "schemas.show", topic=topic, version=version)
    if as_json():
        show_json({**msgspec.structs.asdict(found), "schema": parsed(found.schema)})
        return
    for line in _lines(found):
        say(line)


@schemas.command("register")
@TOPIC
@click.argument("schema", metavar="SCHEMA")
@click.option("--type", "type_", metavar="NAME", help="What you call the type.")
@MODE
@server_options
@json_option("Print one JSON object.")
def register_command(
    topic: str, schema: str, type_: str | None, mode: str | None, **_: object
) -> None:
    """Register SCHEMA as the next version: a file, - or MODULE:TYPE.

    MODULE:TYPE is a msgspec Struct, a dataclass, a TypedDict or a pydantic model. The
    topic is created if there is none. A schema that is the latest version already
    stays that version.

    \b
    Examples:
      penstock schemas register orders order.schema.json --mode full
      penstock schemas register orders shop.events:Order
    """
    given = given_schema(schema)
    with at_desk() as desk:
        done = ask(
            desk,
            SchemaDone,
            "schemas.register",
            topic=topic,
            schema=given.schema,
            type=given.type if type_ is None else type_,
            mode=mode,
            by=who(),
        )
    if as_json():
        show_json(done)
        return
    verb = "registered" if done.fresh else "nothing new: this is"
    say(f"{verb} version {done.version} of {topic}, mode {done.mode}")


@schemas.command("check")
@TOPIC
@click.argument("schema", metavar="[SCHEMA]", required=False)
@click.option(
    "--payloads", metavar="FILE", help="Check each line of FILE; - is standard input."
)
@MODE
@server_options
@json_option("Print one JSON object.")
@click.pass_context
def check_command(
    context: click.Context,
    /,
    topic: str,
    schema: str | None,
    payloads: str | None,
    mode: str | None,
    **_: object,
) -> None:
    """Check whether SCHEMA could be the next version, and whether payloads fit.

    Nothing is changed. Payloads are checked against SCHEMA, or without one against the
    schema of the topic. Exit code 1 says that something does not fit.

    \b
    Examples:
      penstock schemas check orders new-order.schema.json
      penstock schemas check orders --payloads orders.jsonl
    """
    if schema is None and payloads is None:
        raise Refusal("there is nothing to check", "give SCHEMA, --payloads or both")
    candidate = None if schema is None else given_schema(schema).schema
    lines = None if payloads is None else _payloads(payloads)
    with at_desk() as desk:
        found = _checked(desk, lines, topic=topic, schema=candidate, mode=mode)
    if as_json():
        show_json(found)
    else:
        for line in _verdict(found, judged=schema is not None):
            say(line)
    if found.problems or found.misfits:
        context.exit(1)


@schemas.command("mock")
@TOPIC
@click.option(
    "--count",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many documents.",
)
@click.option(
    "--seed",
    default="0",
    show_default=True,
    metavar="TEXT",
    help="The same seed makes the same documents.",
)
@click.option("--publish", is_flag=True, help="Publish them to TOPIC as well.")
@VERSION
@server_options
@json_option("Print one JSON array.")
def mock_command(
    topic: str,
    count: int,
    seed: str,
    version: int | None,
    *,
    publish: bool,
    **_: object,
) -> None:
    """Make up documents that fit the schema of a topic, one a line.

    So a subscriber can be written before there is a publisher.

    \b
    Examples:
      penstock schemas mock orders --count 3 --seed 7
      penstock schemas mock orders --count 1000 --publish
    """
    with at_desk() as desk:
        found = ask(desk, SchemaView, "schemas.show", topic=topic, version=version)
    documents = mock(parsed(found.schema), seed, count)
    made: Iterator[bytes] = map(msgspec.json.encode, documents)
    if publish:
        made = _published(topic, made)
    if as_json():
        write_line(b"[" + b",".join(made) + b"]")
        return
    for document in made:
        write_line(document)


@schemas.command("mode")
@TOPIC
@click.argument("mode", type=click.Choice(MODES), required=False)
@server_options
@json_option("Print one JSON object.")
def mode_command(topic: str, mode: str | None, **_: object) -> None:
    """Say how the next versions have to agree with the latest one, or show it.

    \b
      backward  the new version reads what was written with the old one
      forward   the old version reads what is written with the new one
      full      both
      none      anything goes

    \b
    Example:
      penstock schemas mode orders full
    """
    with at_desk() as desk:
        by = None if mode is None else who()
        done = ask(desk, ModeView, "schemas.mode", topic=topic, mode=mode, by=by)
    if as_json():
        show_json(done)
    else:
        say(f"mode of {topic} is {done.mode}")


def _published(topic: str, documents: Iterator[bytes]) -> Iterator[bytes]:
    """The documents, each when it is in the topic."""
    with connected() as client:
        while batch := list(islice(documents, _BATCH)):
            client.publish(topic, batch)
            yield from batch


def _checked(desk: Asker, payloads: list[bytes] | None, **said: object) -> CheckView:
    """What the desk says of all payloads, a part of them at a time."""
    found: CheckView | None = None
    at = 0
    while found is None or (payloads is not None and at < len(payloads)):
        part = None if payloads is None else _part(payloads, at)
        page = ask(desk, CheckView, "schemas.check", payloads=part, **said)
        misfits = [
            msgspec.structs.replace(one, index=one.index + at) for one in page.misfits
        ]
        known = [] if found is None else found.misfits
        found = msgspec.structs.replace(page, misfits=known + misfits)
        at += len(part or ())
    return found


def _part(payloads: list[bytes], at: int) -> list[bytes]:
    """As many as a message holds with ease."""
    part, room = payloads[at : at + 1], _PART_BYTES
    for payload in payloads[at + 1 : at + _BATCH]:
        room -= len(payload)
        if room < 0:
            break
        part.append(payload)
    return part


def _payloads(file: str) -> list[bytes]:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return [line for line in data.splitlines() if line.strip()]


def _verdict(found: CheckView, *, judged: bool) -> Iterator[str]:
    if judged and found.version is None:
        yield f"{found.topic} has no schema yet: this may be the first version"
    elif judged and not found.problems:
        yield f"may follow version {found.version} of {found.topic}, mode {found.mode}"
    for problem in found.problems:
        yield f"{problem.path}: {problem.reason}"
    for misfit in found.misfits:
        yield f"payload {misfit.index}: {misfit.path}: {misfit.reason}"
    if not judged and not found.misfits:
        yield f"all payloads fit version {found.version} of {found.topic}"


def _row(one: SchemaRow) -> tuple[str, ...]:
    return (one.topic, str(one.version), one.mode, one.type, *_since(one))


def _since(one: VersionRow) -> tuple[str, str]:
    return show.time(one.at_ms), one.by


def _lines(found: SchemaView) -> Iterator[str]:
    yield from show.table(
        [
            ("topic", found.topic),
            ("version", str(found.version)),
            ("type", found.type),
            ("mode", found.mode),
        ]
    )
    yield ""
    rows = [(str(one.version), one.type, *_since(one)) for one in found.versions]
    yield from show.table([("VERSION", "TYPE", "SINCE", "BY"), *rows])
    yield ""
    yield from msgspec.json.format(found.schema, indent=2).splitlines()
