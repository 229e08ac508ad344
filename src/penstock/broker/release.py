"""What a PUBREL does: a pending message is published and forgotten, in one step.

Between its PUB and its PUBREL the topic may have got another schema. A message that no
longer fits becomes a dead letter in the same way: in one step, so that it is neither
lost nor tried for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.delivery import letters
from penstock.delivery.pending import Message
from penstock.errors import InvalidPayload
from penstock.log import Columns

if TYPE_CHECKING:
    from penstock.broker.broker import Broker


def release(broker: Broker, message: Message, now_s: float) -> None:
    """Publish a pending message; raises InvalidPayload if it is a dead letter now."""
    columns = Columns([message.payload], int(now_s * 1000))
    columns.take({name: [time] for name, time in message.times.items()})
    try:
        # Charged for at its PUB, perhaps to somebody else.
        broker.accept(message.topic, columns, charged=True).whole()
    except InvalidPayload as error:
        letter = letters.unfit(message, str(error), now_s)
        letters.keep(broker.log, letter, broker.letter_options)
        broker.pending.give_up(message)
        raise
    broker.pending.remove(message)
