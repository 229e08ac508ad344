"""What all MQTT connections of a server have in common: sessions, wills, time.

A session ends when its time without a connection is over, or with its connection if it
has none. Its will is published when its delay is over or the session ends, whichever
comes first, unless the client is back before (MQTT-3.1.3-9).
"""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, cast

from penstock.broker.broker import Broker
from penstock.broker.sessions import Session, Will
from penstock.errors import LogError, PenstockError
from penstock.gateway.mqtt.headers import EXPIRES, common
from penstock.gateway.mqtt.system import System
from penstock.gateway.options import MqttOptions
from penstock.log import Columns

if TYPE_CHECKING:
    from penstock.gateway.mqtt.gateway import MqttGateway

logger = logging.getLogger(__name__)

# A session with more topics than this has those forgotten that it is done with.
MANY_TOPICS = 1_000
SWEEP_S = 10.0
# A will that the log does not take now is tried again after this time.
RETRY_S = 1.0


# In front of the ids of clients that have none.
ASSIGNED = "auto-"


def subscriber_of(client: str) -> str | None:
    """The name that rules of subscribers are about; None if we have made it up."""
    return None if client.startswith(ASSIGNED) else client


class MqttHub:
    def __init__(self, broker: Broker, options: MqttOptions) -> None:
        self.broker = broker
        self.options = options
        self.system = System(broker, options)
        self._assigned = count(1)
        self._sweep_s = 0.0

    def assigned_id(self) -> str:
        """A client id that nobody has."""
        start, sessions = self.broker.log.now_ms(), self.broker.sessions
        while sessions.get(name := f"{ASSIGNED}{start:x}-{next(self._assigned)}"):
            pass
        return name

    def connected(self, session: Session) -> MqttGateway | None:
        """Who holds the session now."""
        return cast("MqttGateway | None", session.outlet)

    def expiry(self, asked_s: int) -> float | None:
        """How long a session is kept; None for ever (MQTT-3.1.2-23)."""
        most = self.options.max_session_s
        if asked_s == 0xFFFFFFFF:
            return most or None
        return min(float(asked_s), most) if most else float(asked_s)

    def expire(self, client: str, now_s: float) -> None:
        """End the session of a client whose time is over, if it has not ended yet."""
        known = self.broker.sessions.get(client)
        if known is not None and known.outlet is None:
            self._see_to(known, now_s)

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
        try:
            self._publish_will(session)
        except LogError as error:
            _warn(session, error)
        self.broker.sessions.end(session)

    def tick(self, now_s: float) -> None:
        """What time brings."""
        for session in self.broker.sessions.offline:
            self._see_to(session, now_s)
        self.system.tick(now_s)
        if now_s >= self._sweep_s:
            self._sweep_s = now_s + SWEEP_S
            self.sweep()

    def sweep(self) -> None:
        """Forget the subscriptions that large sessions are done with."""
        sessions = self.broker.sessions
        for session in sessions:
            if len(session.topics) > MANY_TOPICS:
                sessions.routes.sweep(session)

    def _see_to(self, session: Session, now_s: float) -> None:
        gone_s = session.gone_s
        assert gone_s is not None, "it is offline"
        over = session.expiry_s is not None and now_s >= gone_s + session.expiry_s
        due = session.will_due_s is not None and now_s >= session.will_due_s
        if not over and not due:
            return
        try:
            self._publish_will(session)
        except LogError:  # the disk is full, or busy: nothing is lost by waiting
            session.will_due_s = now_s + RETRY_S
            return
        if over:
            self.broker.sessions.end(session)
        else:
            self.broker.sessions.changed(session)

    def _publish_will(self, session: Session) -> None:
        """Publish a will, if there is one; raises LogError if that cannot be now."""
        if session.will is not None:
            accounts = self.broker.accounts
            try:
                with accounts.acting(accounts.named(session.user)):
                    publish_will(self.broker, session.will, session.producer)
            except LogError:
                raise
            except PenstockError as error:
                _warn(session, error)
        session.will = session.will_due_s = None


def _warn(session: Session, error: PenstockError) -> None:
    logger.warning(
        "the will of %s was not published: %s",
        session.client,
        error,
        extra={"action": "will_failed"},
    )


def publish_will(broker: Broker, will: Will, producer: str) -> None:
    """Publish a will, and retain it if it says so."""
    now_ms = broker.log.now_ms()
    headers = {**will.headers, **common(will.qos, retain=will.retain)}
    if will.lifetime_s is not None:
        headers[EXPIRES] = str(now_ms + int(will.lifetime_s * 1000))
    publish(
        broker,
        will.topic,
        Columns(
            [will.payload],
            now_ms,
            headers=[headers],
            priorities=[will.priority] if will.priority else None,
            producer=producer,
        ),
        retain=will.retain,
        relaxed=not will.qos,
    )


def publish(
    broker: Broker, topic: str, events: Columns, *, retain: bool, relaxed: bool
) -> int:
    """Publish events; the last is retained if they say so. The group they are in."""
    if retain:
        broker.retained.check(topic, events.payloads[-1])
    return broker.publish(topic, events, relaxed=relaxed, keep=retain).group
