"""Dead letters to work with: events that failed, and raw input."""

from __future__ import annotations

from penstock.delivery.consumer import Consumer
from penstock.model.failure import Failure
from tests.unit.desk.office import Office

TRACEBACK = 'Traceback (most recent call last):\n  File "app.py", line 7, in pay\n'


def letters(office: Office, **arguments: object) -> list[int]:
    """The numbers that a search finds."""
    page = office.desk.letters.search(**arguments)  # type: ignore[arg-type]
    return [one.number for one in page.letters]


def three(office: Office) -> Office:
    """Letters 0 to 2: events 0 and 1 of ``t`` for ``me``, and raw input."""
    office.publish("t", b"zero", b"one", priorities=[0, 4])
    office.bury(office.subscribe("me", "t", tries=1))
    office.raw_letter(b"x" * 300, "not JSON")
    return office


def consumer_of(office: Office, subscriber: str = "me", topic: str = "t") -> Consumer:
    """Whoever consumes a subscription."""
    return office.broker.subscription(subscriber, topic).consumers[0]


def fail(
    office: Office, consumer: Consumer, kind: str, message: str, traceback: str = ""
) -> None:
    """Everything a consumer may take now fails, in a way of its own."""
    for offset, _ in office.take(consumer):
        failure = Failure(0, 0, kind, message, traceback, 0.25)
        office.broker.refuse(consumer, offset, failure, office.now_s)
    office.commit()


def payloads(office: Office, consumer: Consumer) -> list[bytes]:
    """What a consumer gets now."""
    return [
        portion.page.payloads[index]
        for portion in office.broker.take(consumer, office.now_s, 100)
        for index in range(portion.lo, portion.hi)
    ]


def lose(office: Office, topic: str, end: int) -> None:
    """Retention takes the events of a topic in front of an offset."""
    office.broker.log.roll(topic)
    office.broker.log.trim(topic, end)
    office.broker.pages.forget(topic)
