"""The states of an event that a subscription owes, and the moves between them.

An event is *owed* from the moment it is handed to a consumer until it is settled.

    READY     to be sent again, as soon as a consumer has room
    SUSPECT   the same, but alone: no other suspect may be out (isolation.py)
    PAUSED    not before its time: the pause before a try, or until a debt is paid
    HELD      owed again, and not sent before the group that says so is stored
    SENT      with a consumer
    ALONE     with a consumer, as the only suspect
    RELEASED  received (QoS 2): PUBREL was sent, PUBCOMP is missing
    SETTLED   owed no more: it is forgotten

``MOVES`` says what may follow what. A move that is not in it is a mistake of ours, and
``OwedBook.move``, the only place that changes a state, raises KeyError. Which move an
answer of a consumer is, and whether it makes sense at all, is in handshake.py; which
one a failed try is, in retry.py.

Runs of events that were sent once (``owed_book.Run``) are SENT; they have no object of
their own until something else happens to one of them.
"""

from __future__ import annotations

from enum import IntEnum


class OwedState(IntEnum):
    """Where an owed event stands."""

    READY = 0
    SENT = 1
    RELEASED = 2
    SETTLED = 3
    SUSPECT = 4
    PAUSED = 5
    HELD = 6
    ALONE = 7


class Move(IntEnum):
    """What happens to an owed event."""

    SEND = 0
    """It is handed to a consumer."""
    RESUME = 1
    """Its consumer is back, and has it already."""
    RECEIVE = 2
    """Its consumer has received it, and says so by PUBREC."""
    SETTLE = 3
    """Its consumer is done with it."""
    RETRY = 4
    """It is to be sent again."""
    ISOLATE = 5
    """It is to be sent again, alone."""
    PAUSE = 6
    """It is to be sent again, later."""
    GIVE_UP = 7
    """It is not sent again: its last try has failed, or it is gone, or called off."""


READY, SUSPECT = OwedState.READY, OwedState.SUSPECT
PAUSED, HELD = OwedState.PAUSED, OwedState.HELD
SENT, ALONE = OwedState.SENT, OwedState.ALONE
RELEASED, SETTLED = OwedState.RELEASED, OwedState.SETTLED

QUEUED = (READY, SUSPECT)
"""To be sent as soon as there is room."""
IN_FLIGHT = (SENT, ALONE, RELEASED)
"""With a consumer: what counts against the window."""

MOVES: dict[tuple[OwedState, Move], OwedState] = {
    (READY, Move.SEND): SENT,
    (SUSPECT, Move.SEND): ALONE,
    (READY, Move.RESUME): SENT,
    (SUSPECT, Move.RESUME): SENT,
    (SENT, Move.RECEIVE): RELEASED,
    (ALONE, Move.RECEIVE): RELEASED,
    (SENT, Move.SETTLE): SETTLED,
    (ALONE, Move.SETTLE): SETTLED,
    (RELEASED, Move.SETTLE): SETTLED,
    # After a failed try, at the end of a pause, when what held it is stored, and when
    # the rules have changed that tell a suspect.
    **{
        (state, move): after
        for state in (SENT, ALONE, PAUSED, HELD, READY, SUSPECT)
        for move, after in ((Move.RETRY, READY), (Move.ISOLATE, SUSPECT))
    },
    **{(state, Move.PAUSE): PAUSED for state in (SENT, ALONE, READY, SUSPECT, PAUSED)},
    **{(state, Move.GIVE_UP): SETTLED for state in (SENT, ALONE, READY, SUSPECT, HELD)},
}
