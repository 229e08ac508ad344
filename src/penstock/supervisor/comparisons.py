"""Whether every stage worked, and whether all that went in came out.

Each account compares two counts that have to agree once everything has been worked
off; they come from different parts, so no part is judge in its own case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from penstock.supervisor.figures import Counted, StageCounts, grouped, processed
from penstock.supervisor.plan import COLLECTIONS, FIREHOSE
from penstock.supervisor.process import PartState
from penstock.supervisor.sums import Sums


@dataclass(frozen=True, slots=True)
class Comparison:
    """``what`` has to be ``wanted``, and is ``found``."""

    what: str
    wanted: int
    found: int

    @property
    def right(self) -> bool:
        return self.wanted == self.found

    def line(self) -> str:
        found, wanted = grouped(self.found), grouped(self.wanted)
        if self.right:
            return f"ok    {self.what}: {found}"
        difference = self.found - self.wanted
        return f"WRONG {self.what}: {found} instead of {wanted} ({difference:+})"


@dataclass(frozen=True, slots=True)
class StoredDocuments:
    """Documents by collection: before the first run, and now."""

    before: Mapping[str, int]
    now: Mapping[str, int]
    engaged: int
    """Tweets that the totals of users count."""


def accounts(
    statuses: Mapping[str, Mapping[str, object]],
    counted: Counted,
    sums: Sums,
    stored: StoredDocuments | None,
    *,
    letters: int,
    sent: Mapping[str, int],
) -> list[Comparison]:
    """What has to agree. ``stored``: None without Spark.

    ``letters`` are those of what came in that the broker has; ``sent``: the number of
    the last message that the source has sent, by stream. They count from 1 on.
    """
    ingest = statuses.get("ingest", {})
    received, panics = _of(ingest, "events"), _of(ingest, "panics")
    malformed = _of(ingest, "malformed")
    firehose = counted.topics.get(FIREHOSE, 0)
    found = [
        Comparison("messages received of those sent", sum(sent.values()), received),
        Comparison("tweets in firehose", received - panics - malformed, firehose),
        Comparison(
            "dead letters of panics and of what makes no sense",
            panics + malformed,
            letters,
        ),
    ]
    if stored is not None:
        inserts = statuses.get("cdc", {}).get("inserts") or {}
        captured = cast(Mapping[str, Any], inserts)
        found.append(
            Comparison("tweets processed", firehose, processed(counted)[0] or 0)
        )
        found += [
            Comparison(
                f"changes captured of new {name}",
                stored.now[name] - stored.before.get(name, 0),
                _of(captured, name),
            )
            for name in COLLECTIONS
        ]
        if sums.is_whole:
            found += _statistics(panics - sums.waiting, stored.engaged, sums.reported)
    for (who, topic), (position, lag) in sorted(counted.places.items()):
        if who.startswith("up-"):
            found.append(
                Comparison(f"events of {topic} acknowledged", position + lag, position)
            )
    return found


def _statistics(panics: int, tweets: int, sent: Mapping[str, int]) -> list[Comparison]:
    """Tweets that were written, and panics, are told of in one window each."""
    return [
        Comparison("tweets told by statistics", tweets, sent["tweets_stats"]),
        Comparison("users told by statistics", tweets, sent["users_stats"]),
        Comparison("panics told by statistics", panics, sent["logger_stats"]),
    ]


def idle(rows: Sequence[StageCounts], *, ever: bool = False) -> list[str]:
    """Stages that have done nothing in this run, or ``ever``."""
    counted = [row for row in rows if row.name != "store"]
    return [row.name for row in counted if not (row.events if ever else row.new)]


def behind(rows: Sequence[StageCounts]) -> list[str]:
    """Stages that still have something to do, or are not there to say."""
    return [row.name for row in rows if row.lag or _is_away(row) or _is_unknown(row)]


def _is_away(row: StageCounts) -> bool:
    return row.state not in (PartState.READY, PartState.ENDED)


def _is_unknown(row: StageCounts) -> bool:
    return row.lag is None and row.name not in ("broker", "source", "store")


def _of(status: Mapping[str, object], name: str) -> int:
    value = status.get(name)
    return int(value) if isinstance(value, int | float) else 0


def sent(source: Mapping[str, object], ingest: Mapping[str, object]) -> dict[str, int]:
    """The last message that was sent, by stream: what the source says of itself.

    If it was killed it has not said the very last: then some have come that it does
    not know of.
    """
    sent = cast(Mapping[str, Any], source.get("sent") or {})
    found = {name: int(last) for name, last in sent.items()}
    for url, last in cast(Mapping[str, Any], ingest.get("sources") or {}).items():
        name = url.rpartition("/")[2]
        if str(last).isdigit():
            found[name] = max(found.get(name, 0), int(last))
    return found
