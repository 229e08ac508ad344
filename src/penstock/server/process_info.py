"""What is around the broker, for its desk: connections, settings, processes."""

from __future__ import annotations

from penstock.desk.views.figures import (
    ConnectionRow,
    Pipeline,
    Processes,
    SettingRow,
)
from penstock.server.connections import connection_counts, connection_rows
from penstock.server.engine import Engine
from penstock.server.pipeline_status import pipeline_status
from penstock.server.processes import ProcessWatch
from penstock.server.setting_rows import setting_rows
from penstock.server.settings import Settings


class ServerProcessInfo:
    """See broker.figures.Around. A program that embeds a broker has no settings."""

    def __init__(self, engine: Engine, settings: Settings | None = None) -> None:
        self._engine = engine
        self._settings = settings
        self._watch = ProcessWatch()

    def connections(self) -> list[ConnectionRow]:
        return connection_rows(self._engine)

    def connection_counts(self) -> dict[str, int]:
        return connection_counts(self._engine)

    def settings(self) -> list[SettingRow]:
        return [] if self._settings is None else setting_rows(self._settings)

    def processes(self) -> Processes:
        return self._watch.look(self.pipeline())

    def pipeline(self) -> Pipeline:
        path = None if self._settings is None else self._settings.http.pipeline_status
        return pipeline_status(path, int(self._engine.now_s() * 1000))
