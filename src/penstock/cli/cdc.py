"""``penstock cdc``: changes of a database as events of topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import isfinite

import click

from penstock.cdc.run import Pump
from penstock.cdc.shown import Path, Shown
from penstock.cdc.sources import drop_capture, open_capture, open_snapshot
from penstock.cli.connect import server_options, token_of, whereabouts
from penstock.cli.output import say
from penstock.cli.part import part, part_options
from penstock.cli.refusal import Refusal
from penstock.client.feed import Feed
from penstock.model.event import MAX_PRIORITY
from penstock.model.topic import topic_name
from penstock.store.store import VARIABLE, open_store, place_of

MESSAGE = click.option(
    "--message",
    "messages",
    metavar="COLLECTION=FIELD",
    multiple=True,
    help="This field of its documents is the msg of events; a.b is the field b in a. "
    "Once for each collection.",
)
PRIORITY = click.option(
    "--priority",
    "priorities",
    metavar="COLLECTION=FIELD:N,N",
    multiple=True,
    help="An event's priority is how many of these numbers the field has reached. Once "
    "for each collection.",
)


def shown_of(
    collections: Sequence[str], messages: Sequence[str], priorities: Sequence[str]
) -> dict[str, Shown]:
    """What was asked for, by collection; raises Refusal."""
    fields = {
        name: _path("--message", rest)
        for name, rest in _by_collection("--message", messages, collections).items()
    }
    scores = {
        name: _score(rest)
        for name, rest in _by_collection("--priority", priorities, collections).items()
    }
    return {
        name: Shown(
            message=fields.get(name),
            score=scores[name][0] if name in scores else None,
            thresholds=scores[name][1] if name in scores else (),
        )
        for name in (*fields, *(name for name in scores if name not in fields))
    }


def _by_collection(
    option: str, given: Sequence[str], collections: Sequence[str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        name, sign, rest = one.partition("=")
        if not sign:
            raise Refusal(f"{option} {one} has no =", "for example: orders=title")
        if name not in collections:
            raise Refusal(f"{option} {one}: {name} is not one of --collections")
        if name in found:
            raise Refusal(f"{option} names {name} twice")
        found[name] = rest
    return found


def _path(option: str, text: str) -> Path:
    names = tuple(text.split("."))
    if not all(names):
        raise Refusal(f"{option}: {text!r} is no name of a field", "say a or a.b")
    return names


def _score(text: str) -> tuple[Path, tuple[float, ...]]:
    field, _, numbers = text.rpartition(":")
    try:
        thresholds = tuple(float(number) for number in numbers.split(","))
    except ValueError:
        thresholds = ()
    good = all(map(isfinite, thresholds)) and len(thresholds) <= MAX_PRIORITY
    if not thresholds or not good or any(a >= b for a, b in pairwise(thresholds)):
        raise Refusal(
            f"--priority {text}: behind the field come 1 to {MAX_PRIORITY} numbers, "
            "each larger than the one before",
            "for example: orders=total:10,100,1000",
        )
    return _path("--priority", field), thresholds


NAME = "cdc"


@click.group()
def cdc() -> None:
    """Capture what changes in a database, as events of topics."""


_store = click.option(
    "--store",
    metavar="URL",
    envvar=VARIABLE,
    required=True,
    help="postgresql://… or mongodb://…/DATABASE, a replica set. "
    f"Default: ${VARIABLE}.",
)
_name = click.option(
    "--name",
    default="cdc",
    show_default=True,
    help="Of this capture: its place, and its slot in PostgreSQL.",
)


@cdc.command()
@_store
@click.option(
    "--collections",
    metavar="NAMES",
    required=True,
    help="Collections or tables, with a comma between them. Each is a topic.",
)
@_name
@click.option(
    "--document",
    metavar="NAME",
    help="The column (PostgreSQL, JSON) or field (MongoDB) that is the document.",
)
@MESSAGE
@PRIORITY
@click.option(
    "--prefix", default="", metavar="TEXT", help="Stands in front of topics' names."
)
@click.option(
    "--create",
    is_flag=True,
    help="Create what is missing of them, as collections of a store.",
)
@click.option(
    "--from-now",
    is_flag=True,
    help="Forget where the capture was: begin with what changes from now on.",
)
@click.option(
    "--snapshot",
    is_flag=True,
    help="The first time, tell what is there already, and then what changes.",
)
@part_options
@server_options
def run(
    store: str,
    collections: str,
    name: str,
    document: str | None,
    messages: tuple[str, ...],
    priorities: tuple[str, ...],
    prefix: str,
    ready_file: str | None,
    status_file: str | None,
    *,
    create: bool,
    from_now: bool,
    snapshot: bool,
    **_: object,
) -> None:
    """Publish every change of some collections or tables, once.

    An event has the operation, the key, the document before and after, and its place in
    the source; its id is made of that place. With --message it has a msg, too, which
    the line protocol shows in front of all that. The place is stored with what was
    published: after a crash of anything nothing is missing and nothing is there twice.
    The first run begins with what changes from then on; with --snapshot it tells what
    is there already in front of that, with the operation read. PostgreSQL needs
    wal_level=logical, and REPLICA IDENTITY FULL of a table for the document before. A
    database that is away is waited for.

    Goes on until Ctrl-C or SIGTERM.

    \b
    Examples:
      penstock cdc run --store postgresql://me@db/shop --collections orders,customers
      penstock cdc run --store mongodb://db/shop?replicaSet=rs0 --collections orders
      penstock cdc run --store … --collections orders --message orders=customer.name
        --priority orders=total:10,100,1000
    """
    wanted = list(dict.fromkeys(filter(None, map(str.strip, collections.split(",")))))
    if not wanted:
        raise Refusal("--collections names nothing", "for example: orders,customers")
    for one in wanted:
        topic_name(prefix + one)
    shown = shown_of(wanted, messages, priorities)
    capture = open_capture(store, name, wanted, document=document)
    where, user, password = whereabouts()
    token = token_of()
    with part(ready_file, status_file) as self:
        if create:
            with open_store(store) as kept:
                kept.prepare(wanted)
        with Feed(
            where,
            f"cdc:{name}",
            gateway=NAME,
            user=user,
            password=password,
            token=token,
        ) as feed:
            pump = Pump(
                capture,
                feed,
                prefix=prefix,
                from_now=from_now,
                snapshot=partial(open_snapshot, store, name, wanted, document=document),
                anew=snapshot,
                shown=shown,
            )

            def tell() -> None:
                self.tell(
                    events=pump.events,
                    lag=pump.lag,
                    errors=pump.errors,
                    snapshot=pump.reads,
                    inserts=dict(pump.inserts),
                )

            try:
                if pump.begin_patiently(self.stopping.is_set, tell):
                    self.ready(store=place_of(store))
                    pump.run(self.stopping.is_set, tell)
            finally:
                pump.close()
                tell()


@cdc.command()
@_store
@_name
def drop(store: str, name: str) -> None:
    """Remove what a capture keeps in the database: it will not run again.

    PostgreSQL keeps all changes that a capture has not published yet, also of one that
    never runs again: its slot and its publication are dropped. MongoDB keeps nothing
    for a capture.

    \b
    Example:
      penstock cdc drop --store postgresql://me@db/shop --name orders
    """
    if drop_capture(store, name):
        say(f"dropped the capture {name} of {place_of(store)}")
    else:
        say(f"{place_of(store)} keeps nothing for a capture {name}")
