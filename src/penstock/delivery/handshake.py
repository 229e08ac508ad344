"""The handshakes of QoS 0, 1 and 2 as tables, for both roles of the broker.

Towards a consumer (outbound), a delivery is in one of the states of states.py::

    SENT ──ACK──> SETTLED                               QoS 1
    SENT ──PUBREC──> RELEASED ──PUBCOMP──> SETTLED      QoS 2, PUBREL sent in between

A repeated PUBREC finds the delivery RELEASED and is answered with PUBREL again.
Whatever is not in the table changes nothing: it names a message that is not in flight,
or is the wrong answer to one that is, which ends a connection of MQTT.

The promise of QoS 2 hangs on one rule: **PUBREL leaves only when the disk knows of the
PUBREC.** After a PUBREL the consumer forgets the message id, so a broker that forgot
the PUBREC in a crash would send the event again and the consumer could not tell. For
the same reason a reconnect resends PUB for what is SENT and PUBREL for what is
RELEASED.

From a publisher (inbound), a message is PENDING from its PUB, durable before PUBREC,
until its PUBREL, which publishes it and forgets the id in one atomic step. A PUBREL of
an unknown id is answered PUBCOMP: it can only be one that was answered before.
"""

from __future__ import annotations

from enum import IntEnum

from penstock.delivery.states import ALONE, RELEASED, SENT, SETTLED, OwedState


class Reply(IntEnum):
    """What a consumer says about a delivery."""

    ACK = 1
    PUBREC = 2
    PUBCOMP = 3


OUTBOUND: dict[tuple[int, OwedState, Reply], OwedState] = {
    (1, SENT, Reply.ACK): SETTLED,
    (1, ALONE, Reply.ACK): SETTLED,
    (2, SENT, Reply.PUBREC): RELEASED,
    (2, ALONE, Reply.PUBREC): RELEASED,
    (2, RELEASED, Reply.PUBREC): RELEASED,
    (2, RELEASED, Reply.PUBCOMP): SETTLED,
}


def next_state(qos: int, state: OwedState, answer: Reply) -> OwedState | None:
    """Where the answer takes a delivery; None if it makes no sense there."""
    return OUTBOUND.get((qos, state, answer))
