"""Millions of events go in and come out in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import DEEP

# Of 100 bytes each, and about as much beside: more than the limit in either case.
EVENTS = 10_000_000 if DEEP else 400_000
LIMIT_MIB = 200 if DEEP else 64
PROGRAM = """
import re, sys
from pathlib import Path
from penstock.log import Columns, Log, TopicOptions

BATCH, BATCHES = 1000, int(sys.argv[2]) // 1000
log = Log.open(sys.argv[1])
log.create_topic("t", TopicOptions(durability="os"))
for number in range(BATCHES):
    base = number * BATCH
    texts = [b"%-100d" % offset for offset in range(base, base + BATCH)]
    log.append("t", Columns(texts, base))
    log.commit(sync=False)
log.sync()
offset = total = 0
while batches := log.read("t", offset):
    for batch in batches:
        payloads = batch.payloads()
        assert int(payloads[0]) == batch.base_offset == total
        total += len(payloads)
    offset = batches[-1].end_offset
assert total == BATCH * BATCHES
log.close()
# Not ru_maxrss: that survives exec, so it begins at the size of the parent.
status = Path("/proc/self/status").read_text()
print(total, int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) // 1024)
"""


@pytest.mark.slow
def test_millions_of_events_stay_within_the_memory_limit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(EVENTS)]

    ran = subprocess.run(command, check=True, capture_output=True, text=True)

    events, mib = map(int, ran.stdout.split())
    assert events == EVENTS
    assert mib < LIMIT_MIB, f"{mib} MiB"
