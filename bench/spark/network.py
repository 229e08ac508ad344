"""The same topic from a broker that runs, beside its files."""

from __future__ import annotations

from bench.peers.adapter import Place
from bench.rounds import Contender, Row
from bench.spark import batch, rows, topics
from bench.spark.scene import Scene, served, timed

NAME = "table over the network"
LEAST = 0.6
MOST_CORES = 1.0
FILES, BROKER = "from files", "from a broker on loopback"


def run(scene: Scene) -> list[Row]:
    table: list[Row] = []
    with served(scene.folder) as place:
        servers = f"127.0.0.1:{place.ports['native']}"
        for case, (columns, _) in batch.CASES.items():
            files = reading(scene, columns, place, path=scene.data)
            broker = reading(scene, columns, place, servers=servers)
            found = scene.turns({FILES: files, BROKER: broker})
            ours = found[BROKER]
            ratio = ours.events_per_s / found[FILES].events_per_s
            table.append(rows.plain(NAME, case, FILES, found[FILES]))
            row = rows.plain(NAME, case, BROKER, ours)
            table.append(rows.compared(row, ratio, "the files", LEAST))
            cores = ours.facts["broker_cores"]
            table.append(
                Row(
                    benchmark=NAME,
                    case=case,
                    contender="the broker meanwhile",
                    rate=f"{cores:.2f} cores",
                    target=f"under {MOST_CORES:g}",
                    met=cores < MOST_CORES,
                )
            )
    return table


def reading(
    scene: Scene, columns: tuple[str, ...], place: Place, **where: object
) -> Contender:
    """These columns of the topic; the broker runs meanwhile, asked or not."""
    chosen = {"columns": ",".join(columns)} if columns else {}
    return timed(scene, lambda: topics.table(scene.spark, **where, **chosen), place)
