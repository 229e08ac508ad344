"""Take from one topic and put into another: both are stored, or neither is."""

from __future__ import annotations

import tempfile

from penstock.errors import UnknownTopic
from penstock.log import Columns, Log


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with Log.open(directory) as log:
            log.create_topic("debits")
            log.create_topic("credits")
            transfer(log, "debits", "credits", b"50")
            try:
                transfer(log, "debits", "nowhere", b"70")
            except UnknownTopic as error:
                print(f"refused: {error}")
            print(f"synced: {ends(log)}")
            transfer_unsynced(log, b"90")
        with Log.open(directory) as log:
            print(f"after a crash before the commit: {ends(log)}")


def transfer(log: Log, source: str, target: str, amount: bytes) -> None:
    now_ms = log.now_ms()
    batch = Columns([amount], now_ms)
    log.append_group({source: batch, target: batch})
    log.sync()
    print(f"moved {amount.decode()} from {source} to {target}")


def transfer_unsynced(log: Log, amount: bytes) -> None:
    batch = Columns([amount], log.now_ms())
    log.append_group({"debits": batch, "credits": batch})
    log.abandon()  # lets go of everything at once, as a crash would


def ends(log: Log) -> str:
    return ", ".join(f"{name} {log.topic(name).end_offset}" for name in log.topics())


if __name__ == "__main__":
    main()
