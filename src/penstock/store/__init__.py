"""Documents in a database: written in bulk, each once, the newest version kept.

    from penstock.store import store as stores

    with stores.open("postgresql://…") as store:
        store.prepare(["tweets"])
        store.upsert("tweets", [("17", 1, b'{"text": "hello"}')])

PostgreSQL and MongoDB behind one contract. Needs the extra ``penstock[pipeline]``;
importing this package loads nothing of it.
"""

from __future__ import annotations
