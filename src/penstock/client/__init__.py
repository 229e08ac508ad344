"""Clients of a running server: ``connect`` blocks, ``aio.connect`` does not."""

from __future__ import annotations

from penstock.client.blocking import Client, Subscription, connect
from penstock.client.deliveries import Delivery, Offsets

__all__ = ["Client", "Delivery", "Offsets", "Subscription", "connect"]
