"""Clients of a running server: ``connect`` blocks, ``aio.connect`` does not."""

from __future__ import annotations

from penstock.client.blocking import Client, connect
from penstock.client.blocking_subscription import Subscription
from penstock.client.deliveries import Delivery, Offsets
from penstock.client.fetching import Range

__all__ = ["Client", "Delivery", "Offsets", "Range", "Subscription", "connect"]
