"""Has a log's round of retention and compaction done, as the pump of a server would."""

from __future__ import annotations

from penstock.log import BrokerLog, StoreWork


def keep_up(log: BrokerLog) -> None:
    """Turn until a round that was begun, and what follows from it, is done."""
    idle = 0
    while idle < 3:
        work: StoreWork | None = None
        log.commit()
        if (work := log.begin_store()) is not None:
            work.run()
            log.end_store(work)
        elif (work := log.begin_upkeep()) is not None:
            work.run()
            log.end_upkeep(work)
        idle = 0 if work is not None else idle + 1
