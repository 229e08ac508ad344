"""``penstock torture``: whether Penstock keeps its promises on the disk of its user."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import click

from penstock.cli.duration import Duration
from penstock.cli.messages import silent
from penstock.cli.output import say, say_text
from penstock.cli.refusal import Refusal

if TYPE_CHECKING:
    from penstock.torture.report import Report

BROKEN = 1
INTERRUPTED = 130


@click.command()
@click.argument(
    "directory",
    default=".",
    metavar="[DIR]",
    type=click.Path(path_type=Path, file_okay=False),
)
@click.option(
    "--for",
    "seconds",
    metavar="TIME",
    type=Duration(),
    default=600.0,
    show_default="10m",
    help="Go on for so long; what was begun is ended behind it.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    metavar="N",
    help="Draw accidents from this number. [default: a new one]",
)
def torture(directory: Path, seconds: float, seed: int | None) -> None:
    """Have everything go wrong, on this disk, and see whether each promise holds.

    Clients of the line, JSON, MQTT, native and HTTP gateways publish and consume, and
    remember what they were told. One part of the time they talk to a server in DIR
    that is killed, in the middle of writes too and with all lost that it had not
    synced, stopped, refused room on its disk, has its clock set and bits of its files
    flipped. The other part they talk to a broker in memory on a disk that loses power
    at any of its calls. After each accident all that was promised is compared with
    what is stored, and at the end every client has to have everything, once.

    A server is started in a new directory in DIR, the current one by default, on free
    ports of this machine; nothing else is touched. The new directory is removed unless
    a promise is broken. The report at the end is made to be pasted into a bug.

    What was begun when the time is over is ended first, which takes minutes on a slow
    disk. Exit code 0: every promise held. 1: one did not, and the report says which.
    130: interrupted.

    \b
    Examples:
      penstock torture --for 1m
      penstock torture /mnt/nfs --for 1h
      penstock torture --seed 7          the same accidents again
    """
    from penstock.torture.story import Story  # it brings all of the server

    seed = Random().getrandbits(32) if seed is None else seed
    folder = _folder(directory, seed)
    story = Story(folder, seed, seconds, _tell)
    say(f"seed {seed}, in {folder}; Ctrl-C ends it", err=True)
    try:
        with silent():
            report = story.run()
    except KeyboardInterrupt:
        _end(story.report, folder)
        sys.exit(INTERRUPTED)
    _end(report, folder)
    if report.broken is not None:
        sys.exit(BROKEN)


def _folder(directory: Path, seed: int) -> Path:
    folder = directory / f"penstock-torture-{seed}"
    if folder.exists():
        hint = "look at what is in it, and remove it"
        raise Refusal(f"{folder} is there, perhaps of an earlier run", hint)
    folder.mkdir(parents=True)
    return folder


def _tell(report: Report) -> None:
    text = f"{report.seconds:5.0f} s  {report.line}"
    if sys.stderr.isatty():
        click.echo(f"\r{text}", err=True, nl=False)
    else:
        say(text, err=True)


def _end(report: Report, folder: Path) -> None:
    if sys.stderr.isatty():
        say(err=True)
    say_text("\n".join(report.lines()))
    if report.broken is None:
        shutil.rmtree(folder)
    elif report.kept is None:
        folder.rmdir()
