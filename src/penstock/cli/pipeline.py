"""``penstock pipeline``: the Spark jobs, as one process."""

from __future__ import annotations

from collections.abc import Callable

import click

from penstock.cli.conf import conf_option
from penstock.cli.connect import no_token, server_options, whereabouts
from penstock.cli.duration import Duration
from penstock.cli.part import part, part_options
from penstock.client.address import Local, ServerAddress
from penstock.errors import MissingExtra
from penstock.pipeline.options import MAX_PER_TRIGGER
from penstock.store.store import VARIABLE

# How long it may take to end. A batch that is cut off is done again the next time, and
# broker and store may be gone for good.
PATIENCE_S = 10.0


@click.group()
def pipeline() -> None:
    """Make tweets into documents, counts and statistics, with Spark."""


@pipeline.command("run")
@click.option(
    "--store",
    metavar="URL",
    envvar=VARIABLE,
    required=True,
    help=f"Write documents there. Default: ${VARIABLE}.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    required=True,
    help="Keep here how far the query is, and its state.",
)
@click.option(
    "--topic", default="firehose", show_default=True, help="Read tweets from here."
)
@click.option(
    "--master",
    default="local[2]",
    show_default=True,
    help="Where Spark runs: local[N], spark://HOST:PORT, or local-cluster[N,CORES,MB].",
)
@conf_option
@click.option(
    "--trigger",
    "trigger_s",
    metavar="TIME",
    type=Duration(),
    default="1s",
    show_default=True,
    help="Process tweets so often: 500ms, 1s, 2m.",
)
@click.option(
    "--max-per-trigger",
    metavar="N",
    type=click.IntRange(1),
    default=MAX_PER_TRIGGER,
    show_default=True,
    help="At most so many events at a time.",
)
@click.option("--available-now", is_flag=True, help="End with what there is.")
@server_options
@part_options
def run_command(
    store: str,
    checkpoint: str,
    topic: str,
    master: str,
    conf: tuple[tuple[str, str], ...],
    trigger_s: float,
    max_per_trigger: int,
    ready_file: str | None,
    status_file: str | None,
    *,
    available_now: bool,
    **_: object,
) -> None:
    """Make tweets of a topic into documents, as a Spark application.

    Documents go to a store, statistics and counts to topics; each tweet counts once,
    whatever is killed and started again, as long as the checkpoint is kept. A query
    that fails ends the process with exit code 2.

    Ctrl-C or SIGTERM stops it, after the batch that runs if that ends within seconds; a
    second one at once. Needs the extra penstock[pipeline].

    \b
    Examples:
      penstock pipeline run --store postgresql://localhost/tweets --checkpoint check
      penstock pipeline run --server localhost:8410 --store mongodb://localhost/tweets
        --checkpoint check --master spark://host:7077 --trigger 500ms
    """
    run, options, broker = _run()
    where, user, password = whereabouts()
    no_token("Spark")
    with part(ready_file, status_file, patience_s=PATIENCE_S) as self:
        wanted = options(
            broker=broker(
                **_place(where),
                user=user,
                password=password,
            ),
            store=store,
            checkpoint=checkpoint,
            topic=topic,
            trigger_s=trigger_s,
            max_per_trigger=max_per_trigger,
            available_now=available_now,
            conf=dict(conf),
        )
        run(wanted, self, master=master)


def _place(where: ServerAddress) -> dict[str, object]:
    if isinstance(where, Local):
        return {"data": where.directory}
    return {"server": str(where), "tls": where.tls}


def _run() -> tuple[Callable[..., None], Callable[..., object], Callable[..., object]]:
    """Here, because Spark is an extra, and takes its time; raises MissingExtra."""
    try:
        from penstock.pipeline.options import BrokerAddress, PipelineOptions
        from penstock.pipeline.run import run
    except ModuleNotFoundError as error:
        package = (error.name or "pyspark").partition(".")[0]
        raise MissingExtra("The pipeline", package, "pipeline") from error
    return run, PipelineOptions, BrokerAddress
