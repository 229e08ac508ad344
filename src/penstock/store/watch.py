"""How much a PostgreSQL of our own has written, asked for now and then."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from penstock.store.postgres import PgConnection

# Not what is copied into temporary tables first, which go with their session.
WRITTEN = (
    b"SELECT coalesce(sum(n_tup_ins + n_tup_upd), 0) FROM pg_stat_user_tables "
    b"WHERE schemaname NOT LIKE 'pg\\_temp%'"
)


class DocumentWatch:
    """Counts documents written since it began; goes on over a crash of the server."""

    def __init__(self, url: str) -> None:
        self.errors = 0
        """How often the server did not answer."""
        self._url = url
        self._connection: PgConnection | None = None
        self._before: int | None = None
        self._written = 0

    def look(self) -> int:
        """Documents inserted and updated so far; the last answer if there is none."""
        import psycopg

        from penstock.errors import StoreError
        from penstock.store.postgres import connected
        from penstock.store.retry import Away

        try:
            if self._connection is None:
                self._connection = connected(self._url)
            found = self._connection.execute(WRITTEN).fetchone()
        except (psycopg.Error, Away, StoreError):
            self.errors += 1
            self.close()
        else:
            assert found is not None, "an aggregate has one row"
            self._count(int(found[0]))
        return self._written

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _count(self, total: int) -> None:
        # PostgreSQL begins at 0 again after it was killed.
        if self._before is not None:
            since = total - self._before if total >= self._before else total
            self._written += since
        self._before = total
