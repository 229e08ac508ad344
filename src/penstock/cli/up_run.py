"""What ``penstock up`` does, apart from its options: needs the extra ``pipeline``."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from penstock.cli.output import say
from penstock.pipeline import checkpoint
from penstock.supervisor.checks import check_master, check_store, check_trigger
from penstock.supervisor.figures import StageCounts
from penstock.supervisor.outcome import Outcome, Times
from penstock.supervisor.part import Places
from penstock.supervisor.plan import PipelinePorts, PipelineRequest
from penstock.supervisor.run import Up
from penstock.supervisor.table import Display, LiveTable, PlainLines, number


def run(
    directory: Path,
    for_s: float | None,
    *,
    live: bool,
    count: int | None,
    rate: float,
    seed: int,
    resting: bool,
    no_spark: bool,
    store: str | None,
    master: str,
    conf: tuple[tuple[str, str], ...],
    trigger_s: float,
    ack_delay_s: float | None,
    login: tuple[str, str] | None,
    ca_file: str | None,
    line_port: int,
    native_port: int,
    control_port: int,
    http_port: int,
    tweets_port: int,
    store_port: int,
) -> bool:
    """Run the parts; whether all went well. Raises PenstockError."""
    check_master(master)
    check_trigger(trigger_s)
    if store is not None:
        check_store(store)
    wanted = PipelineRequest(
        rate=rate,
        count=count,
        seed=seed,
        spark=not no_spark,
        resting=resting,
        store=store,
        master=master,
        conf=conf,
        trigger_s=trigger_s,
        ack_delay_s=ack_delay_s,
        login=login,
        ca_file=ca_file,
        ports=PipelinePorts(
            line=line_port,
            native=native_port,
            control=control_port,
            http=http_port,
            tweets=tweets_port,
            store=store_port,
        ),
    )
    places = Places(directory)
    if wanted.spark:
        checkpoint.check(str(places.checkpoints))
    display: Display = LiveTable(Console()) if live else PlainLines(say)
    say(f"everything is kept in {directory}, logs in {places.own / 'logs'}")
    outcome = Up(wanted, places, display, show_login=sys.stdout.isatty()).run(for_s)
    if for_s is None and count is None:
        for note in outcome.notes:
            say(note)
        return True
    for line in summary(outcome):
        say(line)
    return outcome.good


def summary(outcome: Outcome) -> list[str]:
    """What came of it, for a person."""
    lines = [f"ran for {_shown(outcome.times)}"]
    for row in outcome.rows:
        lines.append(f"  {row.name}: {_events(row)}{_again(row)}")
    lines += outcome.notes
    if outcome.interrupted:
        return [*lines, "ended before all was worked off: nothing is compared"]
    lines += [f"  {account.line()}" for account in outcome.accounts]
    lines += [f"  WRONG {name} did nothing" for name in outcome.idle]
    lines += [f"  WRONG {name} did not finish" for name in outcome.unfinished]
    return [*lines, _verdict(outcome)]


def _verdict(outcome: Outcome) -> str:
    if outcome.good:
        return "all went well: nothing was lost, and nothing counted twice"
    wrong = sum(not one.right for one in outcome.accounts)
    wrong += len(outcome.idle) + len(outcome.unfinished)
    return f"something is wrong: {wrong} of the lines above say WRONG"


def _shown(times: Times) -> str:
    if not times.working_s:
        return f"{times.total_s:.0f} s"
    return (
        f"{times.total_s:.0f} s: {times.starting_s:.0f} s to start, "
        f"{times.working_s:.0f} s at work, {times.rest_s:.0f} s to work off the rest"
    )


def _events(row: StageCounts) -> str:
    if row.new is None or row.new == row.events:
        return f"{number(row.events)} events"
    return f"{number(row.new)} events, {number(row.events)} with earlier runs"


def _again(row: StageCounts) -> str:
    if not row.restarts:
        return ""
    often = "once" if row.restarts == 1 else f"{row.restarts} times"
    return f", started again {often}"
