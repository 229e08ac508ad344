"""Chains: the ancestors and descendants of an event, found by an index."""

from __future__ import annotations

from penstock.chains.chains import Chains
from penstock.chains.walk import ChainQuestion, Walk

__all__ = ["Chains", "ChainQuestion", "Walk"]
