"""The domains of the shop. Each knows the topics, and none knows another domain.

What a handler publishes through its context is stored together with its success: all
of it once, or nothing, however often the handler is tried or the process is killed.
"""

from __future__ import annotations

from examples.orders import topics
from examples.orders.topics import Notice, Order, Payment
from penstock import Context, Domain, Event

ORDER = Domain("ORDER")
PAYMENT = Domain("PAYMENT")
INVENTORY = Domain("INVENTORY")
DELIVERY = Domain("DELIVERY")
NOTIFICATION = Domain("NOTIFICATION")
DOMAINS = [ORDER, PAYMENT, INVENTORY, DELIVERY, NOTIFICATION]

# The bug: somebody sells saffron, and nobody gave it a cache.
SHELVES = {"tea": "A1", "coffee": "A2", "milk": "B1"}


@PAYMENT.on(topics.ORDER_CREATED)
async def charge(event: Event[Order], context: Context) -> None:
    order = event.payload
    context.publish(topics.PAYMENT_SUCCESS, Payment(order.number, order.total_cents))


@INVENTORY.on(topics.ORDER_CREATED, backoff_s=0.05)
async def collect(event: Event[Order], context: Context) -> None:
    order = event.payload
    _places = [SHELVES[product] for product in order.products]
    context.publish(topics.PRODUCTS_READY, Notice(order.number))


@ORDER.on(topics.PAYMENT_SUCCESS)
async def release(event: Event[Payment], context: Context) -> None:
    context.publish(topics.ORDER_SHIPPING_READY, Notice(event.payload.order))


@DELIVERY.on(topics.ORDER_SHIPPING_READY)
async def send(event: Event[Notice], context: Context) -> None:
    context.publish(topics.INVOICE_READY, event.payload)


# Not async, as many libraries that send mails are not: it is run in a thread.
@NOTIFICATION.on(topics.ORDER_SHIPPING_READY)
def thank(event: Event[Notice], context: Context) -> None:
    context.publish(topics.PAY_SUCCESS_MESSAGE_DELIVERED, event.payload)
