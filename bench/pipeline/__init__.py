"""What the pipeline and its parts can do, against what they are made of."""

from __future__ import annotations
