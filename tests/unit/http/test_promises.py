"""What they promise is tested where they are kept: tests/unit/server/test_promises."""

from __future__ import annotations

import inspect

from penstock.http.house import Promises
from penstock.server.web import EnginePromises


def test_the_engine_keeps_every_promise() -> None:
    promised = {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(Promises, inspect.isfunction)
        if not name.startswith("_")
    }

    kept = {name: inspect.signature(getattr(EnginePromises, name)) for name in promised}

    assert kept == promised
