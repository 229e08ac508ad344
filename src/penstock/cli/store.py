"""``penstock store``: a PostgreSQL of our own, and a look into any store."""

from __future__ import annotations

import json

import click

from penstock.cli import show
from penstock.cli.output import say, write_line
from penstock.cli.part import PartReport, part, part_options
from penstock.cli.refusal import Refusal
from penstock.store import store as stores
from penstock.store.own import OwnPostgres
from penstock.store.watch import DocumentWatch

# How often the server is looked at.
LOOK_S = 1.0
# How long a person waits for a store that is not there.
PATIENCE_S = 5.0


@click.group()
def store() -> None:
    """Run a store of documents, and see what one holds."""


@store.command("run")
@click.option(
    "--data",
    metavar="DIR",
    default="penstock-store",
    show_default=True,
    help="Keep everything here.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="Listen on this port; 0 takes the one it had last, or a free one.",
)
@part_options
def run_command(
    data: str, port: int, ready_file: str | None, status_file: str | None
) -> None:
    """Run a PostgreSQL, on this machine only, until Ctrl-C or SIGTERM.

    It needs nothing but the packages of penstock[pipeline]. The URL that is printed
    opens it; the password is in a file that the URL names, and every account that can
    read that file can connect. The port stays the same from start to start. Run by
    root, it becomes another user, as PostgreSQL demands.

    If this command is killed, PostgreSQL goes on; the next start ends it and goes on
    with its data.

    \b
    Examples:
      penstock store run
      penstock store run --data data/store --port 5433 --ready-file store.json
    """
    server = OwnPostgres(data, port=port)
    with part(ready_file, status_file) as self:
        try:
            url = server.start()
            with DocumentWatch(url) as watch:
                self.tell(events=watch.look())
                write_line(url.encode())
                self.ready(url=url, data=str(server.directory), port=server.port)
                _watch(self, server, watch)
        finally:
            server.stop()


@store.command("count")
@click.argument("url")
@click.argument("collections", nargs=-1)
def count_command(url: str, collections: tuple[str, ...]) -> None:
    """Count the documents of a store, in all collections or in these.

    \b
    Example:
      penstock store count mongodb://localhost/tweets
    """
    with stores.open(url, retry_s=PATIENCE_S) as opened:
        names = collections or tuple(opened.collections())
        rows = [(name, str(opened.count(name))) for name in names]
    for line in show.table(rows) if rows else ["no collections"]:
        say(line)


@store.command("show")
@click.argument("url")
@click.argument("collection")
@click.option("--limit", type=click.IntRange(0), help="At most so many, by key.")
def show_command(url: str, collection: str, limit: int | None) -> None:
    """Print the documents of a collection as JSON lines.

    \b
    Example:
      penstock store show mongodb://localhost/tweets users --limit 3
    """
    with stores.open(url, retry_s=PATIENCE_S) as opened:
        there = opened.collections()
        if collection not in there:
            names = ", ".join(there) or "none"
            raise Refusal(f"there is no collection {collection}", f"there is: {names}")
        for key, version, doc in opened.read(collection, limit=limit):
            row = {"key": key, "version": version, "doc": doc}
            write_line(json.dumps(row, ensure_ascii=False).encode())


def _watch(self: PartReport, server: OwnPostgres, watch: DocumentWatch) -> None:
    """Tell what is written until it is to stop; raises Refusal if PostgreSQL ends."""
    while not self.stopping.wait(LOOK_S):
        if (code := server.wait(0)) is not None:
            raise Refusal(
                f"PostgreSQL ended with {code}",
                f"see {server.directory}/postgresql.log; start it again",
            )
        written = watch.look()
        self.tell(events=written, errors=watch.errors)
