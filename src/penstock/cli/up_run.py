"""What ``penstock up`` does, apart from its options: needs the extra ``pipeline``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from penstock.supervisor.figures import Row
from penstock.supervisor.part import Places
from penstock.supervisor.plan import Ports, Wanted
from penstock.supervisor.run import Outcome, Up
from penstock.supervisor.table import Display, LiveTable, PlainLines, number


def run(
    directory: Path,
    for_s: float | None,
    *,
    live: bool,
    count: int | None,
    rate: float,
    seed: int,
    no_spark: bool,
    store: str | None,
    master: str,
    trigger: str,
    line_port: int,
    native_port: int,
    control_port: int,
    tweets_port: int,
    store_port: int,
) -> bool:
    """Run the parts; whether all went well."""
    wanted = Wanted(
        rate=rate,
        count=count,
        seed=seed,
        spark=not no_spark,
        store=store,
        master=master,
        trigger=trigger,
        ports=Ports(
            line=line_port,
            native=native_port,
            control=control_port,
            tweets=tweets_port,
            store=store_port,
        ),
    )
    places = Places(directory)
    display: Display = LiveTable(Console()) if live else PlainLines(click.echo)
    click.echo(f"everything is kept in {directory}, logs in {places.own / 'logs'}")
    outcome = Up(wanted, places, display).run(for_s)
    if for_s is None and count is None:
        return True
    for line in summary(outcome):
        click.echo(line)
    return outcome.good


def summary(outcome: Outcome) -> list[str]:
    """What came of it, for a person."""
    lines = [f"ran for {outcome.seconds:.0f} s"]
    for row in outcome.rows:
        lines.append(f"  {row.name}: {number(row.events)} events{_again(row)}")
    if outcome.interrupted:
        return [*lines, "ended before all was worked off: nothing is compared"]
    lines += [f"  {account.line()}" for account in outcome.accounts]
    lines += [f"  WRONG {name} did nothing" for name in outcome.idle]
    lines += [f"  WRONG {name} did not finish" for name in outcome.unfinished]
    lines.append("all went well" if outcome.good else "something is wrong, see above")
    return lines


def _again(row: Row) -> str:
    if not row.restarts:
        return ""
    often = "once" if row.restarts == 1 else f"{row.restarts} times"
    return f", started again {often}"
