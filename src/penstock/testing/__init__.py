"""Fakes that are shipped: complete, documented, and used by our own tests."""

from __future__ import annotations

from penstock.testing.crashdisk import CrashDisk, PowerCut

__all__ = ["CrashDisk", "PowerCut"]
