"""Penstock, a durable message broker.

Importing this package is cheap: it loads no room. Import what you need, for
example ``penstock.log``.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
