"""What a server says of itself once all of its listeners accept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

# In the lock of its data directory.
ROLE = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """``ports`` has the port of each listener that is on.

    Their names are line, consumer, publisher, maze_event, maze_client, native, control,
    http, mqtt and mqtts. ``login`` is an address that logs a browser in, while the
    admin token is as the server made it. ``tls`` names the listeners that speak TLS.
    """

    pid: int
    data: str
    host: str
    ports: Mapping[str, int]
    login: str | None = None
    tls: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """The content of a ready file."""
        info: dict[str, object] = {
            "pid": self.pid,
            "data": self.data,
            "ports": dict(self.ports),
        }
        if self.tls:
            info["tls"] = list(self.tls)
        if self.login is not None:
            info["login"] = self.login
        return json.dumps(info, ensure_ascii=False).encode() + b"\n"
