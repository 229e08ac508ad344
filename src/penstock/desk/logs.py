"""The desk's view of who has not settled what: per subscriber, the highest first.

A backlog may be long and a topic may have many subscribers, so an answer holds so many
events of each, about so many bytes, and says where it was cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge, nsmallest
from itertools import islice
from typing import Annotated

from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.delivery.levels import Levels
from penstock.delivery.pages import Page
from penstock.delivery.subscription import Subscription
from penstock.desk.verbs import verb
from penstock.desk.views.logs import LogEvent, LogPage, SubscriberLog
from penstock.log import Batch

MAX_EVENTS = 1000
# Of one answer, and of one subscriber in it.
MAX_BYTES = 4 << 20
# Of one answer, events and subscribers: some tens of milliseconds.
MAX_ROWS = 3000

LogLimit = Annotated[int, Meta(ge=1, le=MAX_EVENTS)]
# Sorts as deliveries by priority do: (-priority, offset).
PriorityPlace = tuple[int, int]


class LogDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("logs")
    def logs(
        self, *, topic: str, after: str = "", limit: LogLimit = MAX_EVENTS
    ) -> LogPage:
        """Unsettled events by subscriber, behind ``after``; raises UnknownTopic."""
        self._broker.log.topic(topic)
        of_topic = self._broker.subscriptions.of_topic(topic)
        found = sorted(
            (one for one in of_topic if one.subscriber > after),
            key=lambda one: one.subscriber,
        )
        page: list[SubscriberLog] = []
        room, rows = MAX_BYTES, MAX_ROWS
        for one in found:
            if room <= 0 or rows <= 0:
                return LogPage(subscribers=page, more=True)
            page.append(self._log_of(one, limit))
            rows -= 1 + len(page[-1].events)
            room -= sum(len(event.msg) + 100 for event in page[-1].events) + 100
        return LogPage(subscribers=page, more=False)

    def _log_of(self, one: Subscription, limit: int) -> SubscriberLog:
        events: list[LogEvent] = []
        room = MAX_BYTES
        places = merge(self._owed(one, limit), self._unsent(one))
        for _, offset in islice(places, limit):
            if room <= 0:
                break
            found = one.cursor.find(offset)
            if found is not None:
                events.append(_event(*found))
                room -= len(events[-1].msg)
        unsettled = one.lag()
        return SubscriberLog(
            subscriber=one.subscriber,
            unsettled=unsettled,
            cut=len(events) < unsettled,
            events=events,
        )

    def _owed(self, one: Subscription, limit: int) -> list[PriorityPlace]:
        """What was sent and is not settled; in log order priorities are looked up."""
        ranked = self._broker.levels.get(one.topic) is not None
        places: list[PriorityPlace] = []
        for owed in one.owed.values():
            look = ranked and owed.level < 0
            found = one.cursor.find(owed.offset) if look else None
            level = owed.level if found is None else found[0].priorities[found[1]]
            places.append((-max(level, 0), owed.offset))
        return nsmallest(limit, places)

    def _unsent(self, one: Subscription) -> Iterator[PriorityPlace]:
        levels = self._broker.levels.get(one.topic)
        cursor = one.cursor
        for level in [0] if levels is None else levels.levels():
            place = cursor.places.get(cursor.level_of(level), cursor.start)
            yield from self._of_level(one.topic, levels, level, place)

    def _of_level(
        self, topic: str, levels: Levels | None, level: int, offset: int
    ) -> Iterator[PriorityPlace]:
        offset = max(offset, self._broker.log.topic(topic).start_offset)
        while True:
            next_ = offset if levels is None else levels.next_at(level, offset)
            if next_ is None:
                return
            page = self._broker.pages.at(topic, next_)
            if page is None:
                return
            there = page.batch.offset_of(page.batch.index_of(next_))
            if there == next_:
                yield -level, next_
                offset = next_ + 1
            else:
                offset = there  # compaction took what was in between


def _event(page: Page, index: int) -> LogEvent:
    batch = page.batch
    one = Batch(batch.topic, batch.body, batch.header, index, index + 1)
    return LogEvent(
        timestamp=one.timestamps()[0],
        priority=page.priorities[index],
        msg=page.payloads[index],
        id=page.ids[index],
    )
