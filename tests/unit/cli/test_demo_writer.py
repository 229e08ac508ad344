from __future__ import annotations

import io
from pathlib import Path

from penstock.cli.demo_writer import PRODUCER, TOPIC, write
from penstock.log import Log


def test_every_line_is_an_event_that_is_there(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic(TOPIC)
    out = io.StringIO()

    write(str(tmp_path), out, max_events=3)

    with Log.open(tmp_path) as log:
        events = [event for batch in log.read(TOPIC, 0) for event in batch.events()]
    assert out.getvalue() == "0\n1\n2\n"
    assert [event.offset for event in events] == [0, 1, 2]
    assert {event.producer for event in events} == {PRODUCER}
