"""Work that may take long, beside the one who has to look after everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundThread:
    """Begins at once, in a thread that nobody waits for when the program ends."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, name="background", daemon=True
        )
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raises what the work has raised."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error
