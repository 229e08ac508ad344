"""``penstock maze``: a server that speaks the maze protocol, and nothing else."""

from __future__ import annotations

import click

from penstock.cli.flags import SWITCHES
from penstock.cli.serve import serve

PORT = click.IntRange(0, 65_535)
OTHERS = {
    name.removeprefix("--").replace("-", "_"): True
    for name in SWITCHES
    if name != "--no-maze"
}


@click.command()
@click.argument("event_port", type=PORT, default=9090)
@click.argument("client_port", type=PORT, default=9099)
@click.option(
    "--data",
    metavar="DIR",
    help='Keep everything in this directory. Default: as of "penstock serve".',
)
@click.option(
    "--ready-file",
    metavar="PATH",
    help="Write process id, data directory and ports here as JSON, once all accept.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say more on standard error.")
@click.pass_context
def maze(
    context: click.Context, /, event_port: int, client_port: int, **options: object
) -> None:
    """Run the follower maze alone: one source of events, and clients.

    The source connects to EVENT_PORT, 9090 if it is left out, clients to CLIENT_PORT,
    9099. Port 0 picks a free port. It is "penstock serve" with every other gateway
    off; commands reach it by its data directory.

    \b
    Examples:
      penstock maze
      penstock maze 9090 9099
      penstock maze 9090 9099 --data maze-data
    """
    ports = {"maze_event_port": str(event_port), "maze_client_port": str(client_port)}
    context.invoke(serve, **OTHERS, **ports, **options)
