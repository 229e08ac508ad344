"""What arguments of verbs may be, where several desks take the same.

A desk with a bound of its own declares a type of its own, under another name.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from penstock.desk.views import MAX_ROWS

Limit = Annotated[int, Meta(ge=1, le=MAX_ROWS)]
Number = Annotated[int, Meta(ge=0)]
# A bound at 64 bits would have to be ``le=2**63 - 1``: msgspec takes ``lt=2**63`` when
# a module is imported, and fails when the verb is asked for the first time.
Offset = Annotated[int, Meta(ge=0)]
By = Annotated[str, Meta(max_length=200)]
"""The person on whose behalf something is done, as they call themselves."""
