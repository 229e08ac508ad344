"""Changes of a database as events of topics: each once, whatever is killed meanwhile.

MongoDB by its change streams, PostgreSQL by logical replication. Needs the extra
``penstock[pipeline]``; importing this package loads nothing of it.
"""

from __future__ import annotations
