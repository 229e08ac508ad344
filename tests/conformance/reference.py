"""Which server is tested: Penstock, if nothing else is named."""

from __future__ import annotations

import os

REFERENCE = os.environ.get("PENSTOCK_CONFORMANCE_REFERENCE", "")
