"""What all MQTT connections of a server have in common: sessions, wills, time.

A session ends when its time without a connection is over, or with its connection if it
has none. Its will is published when its delay is over or the session ends, whichever
comes first, unless the client is back before (MQTT-3.1.3-9). If the log does not take
it, or its commit fails, it is tried again until it is stored, once: it is gone from its
session in the group that holds it. What counts is what its user may do by then: the
will of one who is removed, or may not publish there any more, is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, cast

from penstock.access.grants import Grants
from penstock.broker.broker import Broker
from penstock.broker.publishing import Accepted, StoredPiece
from penstock.errors import InvalidPayload, PenstockError
from penstock.gateway.mqtt.headers import common, fields_of, messages, user_pairs
from penstock.gateway.mqtt.system import System
from penstock.gateway.options import MqttOptions
from penstock.log import Columns
from penstock.model.moment import is_due
from penstock.sessions import Session, Will, Willed
from penstock.sessions.session import WILL_RETRY_S

if TYPE_CHECKING:
    from penstock.gateway.mqtt.gateway import MqttGateway

logger = logging.getLogger(__name__)

# A session with more topics than this has those forgotten that it is done with.
MANY_TOPICS = 1_000
SWEEP_S = 10.0
# Wills of sessions that have ended, waiting in memory for the log: 64 KiB each at most.
MAX_UNPUBLISHED = 1_000


# In front of the ids of clients that have none.
ASSIGNED = "auto-"


def subscriber_of(client: str) -> str | None:
    """The name that rules of subscribers are about; None if we have made it up.

    Clients that have rules do not come in with such a name of their own making.
    """
    return None if client.startswith(ASSIGNED) else client


# What a user may do at this moment; None if there is no such user any more.
Rights = Callable[[str], Grants | None]


class MqttHub:
    """Without ``rights`` there are no users: a client that is in may do everything."""

    def __init__(
        self, broker: Broker, options: MqttOptions, rights: Rights | None = None
    ) -> None:
        self.broker = broker
        self.options = options
        self._rights = rights
        broker.sessions.routes.withhold(options.refused_filters)
        broker.sessions.routes.share_by_key(on=options.share_order == "key")
        self.system = System(broker, options)
        self._assigned = count(1)
        self._sweep_s = 0.0
        self._again_s = 0.0

    def assigned_id(self) -> str:
        """A client id that no session has."""
        start, sessions = self.broker.log.now_ms(), self.broker.sessions
        while sessions.get(name := f"{ASSIGNED}{start:x}-{next(self._assigned)}"):
            pass
        return name

    def connected(self, session: Session) -> MqttGateway | None:
        """Who holds the session now."""
        return cast("MqttGateway | None", session.outlet)

    def is_left(self, session: Session, grants: Grants) -> bool:
        """Whether a session may be ended by another user, who may have its name.

        Its client is away, and its own user may not keep it, or is removed.
        """
        name = subscriber_of(session.client)
        if self._rights is None or session.outlet is not None or name is None:
            return False
        theirs = self._rights(session.user)
        return grants.may_keep(name) and (theirs is None or not theirs.may_keep(name))

    def expiry(self, asked_s: int) -> float | None:
        """How long a session is kept; None for ever (MQTT-3.1.2-23)."""
        most = self.options.max_session_s
        if asked_s == 0xFFFFFFFF:
            return most or None
        return min(float(asked_s), most) if most else float(asked_s)

    def expire(self, client: str, now_s: float) -> None:
        """Do what time would have brought for the session of a client that comes."""
        known = self.broker.sessions.get(client)
        if known is None or known.outlet is not None:
            return
        if _is_over(known, now_s):
            self.end(known)
        elif _is_due(known, now_s):
            self._give_up_will(known)

    def leave(self, session: Session, now_s: float, *, will: bool) -> None:
        """The connection of a session is gone."""
        forgotten = session.will is not None and not will
        if forgotten:
            session.will = None  # MQTT-3.14.4-3
        self.broker.sessions.detach(session, now_s)
        if forgotten:  # a crash must not bring it back
            self.broker.sessions.changed(session)
        self._see_to(session, now_s)

    def end(self, session: Session) -> None:
        """End a session now; its will is published (MQTT-3.1.2-8)."""
        self._give_up_will(session)
        self.broker.sessions.end(session)

    def tick(self, now_s: float) -> None:
        """What time brings."""
        for session in self.broker.sessions.offline:
            self._see_to(session, now_s)
        again = is_due(self._again_s, WILL_RETRY_S, now_s)
        if self.broker.sessions.unpublished and again:
            self._again_s = now_s + WILL_RETRY_S
            self._publish_again()
        self.broker.sessions.routes.tick()
        self.system.tick(now_s)
        if is_due(self._sweep_s, SWEEP_S, now_s):
            self._sweep_s = now_s + SWEEP_S
            self.sweep()

    def sweep(self) -> None:
        """Forget the subscriptions that large sessions are done with."""
        sessions = self.broker.sessions
        for session in sessions:
            if len(session.topics) > MANY_TOPICS:
                sessions.routes.sweep(session)

    def _see_to(self, session: Session, now_s: float) -> None:
        over = _is_over(session, now_s)
        if not over and not _is_due(session, now_s):
            return
        if session.will is not None and now_s < session.will_again_s:
            return
        try:
            self._publish_will(session)
        except PenstockError:  # the disk is full, or busy: nothing is lost by waiting
            session.will_again_s = now_s + WILL_RETRY_S
            return
        if over:
            self.broker.sessions.end(session)

    def _publish_will(self, session: Session) -> None:
        """Publish a will, if there is one; raises what may not happen the next time."""
        if session.will is None:
            return
        willed = Willed(session, session.will)
        self._publish(willed)
        session.will = session.will_due_s = None
        self.broker.sessions.changed(session)

    def _publish(self, willed: Willed) -> None:
        session, will = willed
        accounts = self.broker.accounts
        try:
            self._check_publish(session.user, will.topic)
            with accounts.acting(accounts.named(session.user)):
                publish_will(self.broker, will, session.producer)
        except PenstockError as error:
            if error.retriable:
                raise
            self._warn(session, error)
        else:
            self.broker.sessions.publishing(willed)

    def _check_publish(self, user: str, topic: str) -> None:
        """Raises NotAllowed if a user may not publish there now."""
        if self._rights is None:
            return
        grants = self._rights(user) or Grants(user=user, rules=())
        grants.check_publish(topic)

    def _give_up_will(self, session: Session) -> None:
        """Publish the will of a session that does not carry it any longer."""
        try:
            self._publish_will(session)
        except PenstockError:
            assert session.will is not None, "there is one"
            self.broker.sessions.unpublished.append(Willed(session, session.will))
            session.will = session.will_due_s = None

    def _publish_again(self) -> None:
        """Publish the wills that no session carries, as far as the log takes them."""
        sessions = self.broker.sessions
        waiting, sessions.unpublished = sessions.unpublished, []
        for at, willed in enumerate(waiting):
            if at >= MAX_UNPUBLISHED:
                self._warn(willed.session, f"{MAX_UNPUBLISHED} others wait for the log")
                continue
            try:
                self._publish(willed)
            except PenstockError:
                sessions.unpublished.append(willed)

    def _warn(self, session: Session, error: PenstockError | str) -> None:
        self.broker.throttle.log(
            logger,
            logging.WARNING,
            "the will of %s was not published: %s",
            session.client,
            error,
            about=session.user,
            extra={"action": "will_failed"},
        )


def _is_over(session: Session, now_s: float) -> bool:
    """Whether a session that is offline has no time left."""
    assert session.gone_s is not None, "it is offline"
    return session.expiry_s is not None and now_s >= session.gone_s + session.expiry_s


def _is_due(session: Session, now_s: float) -> bool:
    """Whether the time of a will has come."""
    return session.will_due_s is not None and now_s >= session.will_due_s


def publish_will(broker: Broker, will: Will, producer: str) -> None:
    """Publish a will, and retain it if it says so."""
    now_ms = broker.log.now_ms()
    headers = {**will.headers, **common(will.qos, retain=will.retain)}
    fields = fields_of(user_pairs(headers), will.lifetime_s, now_ms)
    events = messages([will.payload], now_ms, producer, headers, fields)
    outcome = publish(
        broker, will.topic, events, retain=will.retain, relaxed=not will.qos
    )
    outcome.whole()


def publish(
    broker: Broker,
    topic: str,
    events: Columns,
    *,
    retain: bool,
    relaxed: bool,
    stored: Callable[[StoredPiece], None] | None = None,
) -> Accepted:
    """Publish events; the last is retained if they say so.

    What takes a retained message away need not fit the topic's schema: if it does not,
    that is all it does, and it is no event. ``stored``: as of PublishTerms.
    """
    if retain:
        broker.retained.check(topic, events.payloads[-1])
    outcome = broker.accept(topic, events, relaxed=relaxed, keep=retain, stored=stored)
    taking = [
        unit
        for unit, error in outcome.refused.items()
        if retain and isinstance(error, InvalidPayload) and not events.payloads[unit]
    ]
    if taking:
        kept = max((piece.units[-1] for piece in outcome.pieces), default=-1)
        if kept < max(taking):
            broker.retained.forget(topic)
        for unit in taking:
            del outcome.refused[unit]
        piece = StoredPiece(taking, (), broker.promised, None)
        outcome.pieces.append(piece)
        if stored is not None:
            stored(piece)
    return outcome
