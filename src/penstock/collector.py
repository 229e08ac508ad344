"""Python's collector of garbage that refers to itself: told to look less often.

Batches, and deliveries in flight, are many small objects without cycles: looking for
garbage among them all the time costs more than it finds.
"""

from __future__ import annotations

import gc

# Objects made, and not freed, before it looks among the young ones.
THRESHOLD = 100_000


def relieve() -> None:
    """Have it look seldom, and never again at what is there by now."""
    gc.set_threshold(THRESHOLD)
    gc.collect()
    gc.freeze()
