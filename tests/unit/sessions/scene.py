"""Sessions of a broker on a disk in memory, without a protocol."""

from __future__ import annotations

from penstock.delivery.consumer import Consumer
from penstock.delivery.subscription import Subscription
from penstock.log import Columns
from penstock.sessions import Session, Share, TopicFilter
from tests.unit.delivery import scene
from tests.unit.delivery.scene import Outlet


class Scene(scene.Scene):
    """A broker with a topic ``t``, and clients of it."""

    def come(self, name: str = "ann", expiry_s: float | None = None) -> Session:
        """A client that connects; its session is new or was there."""
        session, _ = self.broker.sessions.open(name, clean=False, expiry_s=expiry_s)
        self.broker.sessions.attach(session, Outlet())
        return session

    def go(self, session: Session) -> None:
        """The connection is gone."""
        self.broker.sessions.detach(session, self.now_s)

    def subscribe_to(self, session: Session, filter_: str, qos: int = 1) -> None:
        self.broker.sessions.subscribe(session, TopicFilter(filter_, qos))

    def events(self, topic: str, count: int = 1, *, commit: bool = True) -> None:
        self.broker.publish(topic, Columns([b"x"] * count))
        if commit:
            self.commit()

    def session(self, name: str = "ann") -> Session:
        """The session of that name, as it is now."""
        found = self.broker.sessions.get(name)
        assert found is not None, f"there is no session of {name}"
        return found

    def shares(self, session: Session) -> list[str]:
        """The topics that a session has a share in."""
        return sorted(share.topic for share in session.shares.values())

    def got(self, session: Session) -> dict[str, list[int]]:
        """What a session takes now, by topic; topics without anything are left out."""
        found: dict[str, list[int]] = {}
        for share in list(session.shares.values()):
            if share.consumer is not None and (offsets := self.take(share.consumer)):
                found[share.topic] = offsets
        return found

    def send(self, session: Session, topic: str = "t", qos: int = 1) -> list[int]:
        """Take what there is of a topic and give it packet ids."""
        share = share_of(session, topic)
        assert share.consumer is not None, "its client is away"
        offsets = self.take(share.consumer)
        return session.packet_ids.send(share.subscription.number, offsets, qos)

    def subscriptions(self) -> list[tuple[str, str]]:
        return sorted((one.subscriber, one.topic) for one in self.broker.subscriptions)


def share_of(session: Session, topic: str = "t") -> Share:
    (found,) = [one for one in session.shares.values() if one.topic == topic]
    return found


def subscription_of(session: Session, topic: str = "t") -> Subscription:
    return share_of(session, topic).subscription


def consumer_of(session: Session, topic: str = "t") -> Consumer:
    found = share_of(session, topic).consumer
    assert found is not None, "nobody consumes it"
    return found
