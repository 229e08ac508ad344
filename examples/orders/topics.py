"""The events of the shop: what its domains may publish, and hear of."""

from __future__ import annotations

import msgspec

from penstock import Topic


class Order(msgspec.Struct):
    number: int
    products: list[str]
    total_cents: int


class Payment(msgspec.Struct):
    order: int
    paid_cents: int


class Notice(msgspec.Struct):
    """Something happened to an order."""

    order: int


ORDER_CREATED = Topic("ORDER_CREATED", Order)
PAYMENT_SUCCESS = Topic("PAYMENT_SUCCESS", Payment)
PRODUCTS_READY = Topic("PRODUCTS_READY", Notice)
ORDER_SHIPPING_READY = Topic("ORDER_SHIPPING_READY", Notice)
INVOICE_READY = Topic("INVOICE_READY", Notice)
PAY_SUCCESS_MESSAGE_DELIVERED = Topic("PAY_SUCCESS_MESSAGE_DELIVERED", Notice)
