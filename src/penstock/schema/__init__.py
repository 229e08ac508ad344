"""JSON Schema: what payloads look like, whether they fit, and whether schemas agree.

Functions over documents; nothing here knows topics, files or clocks.
"""

from __future__ import annotations

from penstock.schema.check import ORDINARY_WEIGHT, Checker, Misfit
from penstock.schema.compat import Incompatibility, judged, problems
from penstock.schema.document import MODES, Mode, Schema, canonical, parsed
from penstock.schema.effort import Effort
from penstock.schema.limits import check_limits
from penstock.schema.mock import mock
from penstock.schema.types import name_of, schema_of
from penstock.schema.weight import weight_of

__all__ = [
    "MODES",
    "ORDINARY_WEIGHT",
    "Checker",
    "Effort",
    "Misfit",
    "Mode",
    "Incompatibility",
    "Schema",
    "canonical",
    "check_limits",
    "judged",
    "mock",
    "name_of",
    "parsed",
    "problems",
    "schema_of",
    "weight_of",
]
