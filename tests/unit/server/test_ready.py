from __future__ import annotations

import json

from penstock.server.ready import Ready


def test_the_ready_file_says_who_where_and_which_ports() -> None:
    ready = Ready(pid=7, data="dä", host="::1", ports={"line": 8000, "native": 8410})

    told = ready.to_json()

    assert told.endswith(b"}\n")
    assert json.loads(told) == {
        "pid": 7,
        "data": "dä",
        "ports": {"line": 8000, "native": 8410},
    }
