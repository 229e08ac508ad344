"""The desk's retained messages: which there are, what they say, and their end."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest

from msgspec.structs import asdict

from penstock.broker.broker import Broker
from penstock.delivery.pages import Page
from penstock.desk.arguments import Limit
from penstock.desk.verbs import Promise, verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.retained import RetainedPage, RetainedRow, RetainedView
from penstock.errors import NothingRetained
from penstock.model.topic_filter import check_filter
from penstock.sessions.retained import TOPIC

# Frames that one answer is made from: the broker waits while they are read.
MAX_BYTES = 64 << 20
# The headers in which the gateway says these; without the first, a message has QoS 2.
QOS = "mqtt.qos"
EXPIRES = "mqtt.expires-ms"


class RetainedDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("mqtt.retained")
    def retained(
        self, *, matching: str = "#", after: str = "", limit: Limit = MAX_ROWS
    ) -> RetainedPage:
        """Retained messages of topics that a filter matches, behind ``after``.

        There may be fewer than ``limit`` though there are more. Raises InvalidName.
        """
        check_filter(matching)
        kept = self._broker.retained
        found = [name for name in kept.topics(matching) if name > after]
        rows: list[RetainedRow] = []
        times: dict[int, list[int]] = {}
        read = 0
        for name in nsmallest(limit, found):
            page, index = self._find(name)
            if page.base not in times:
                read += page.batch.header.length
                times[page.base] = page.batch.timestamps()
            rows.append(_row(name, page, index, times[page.base]))
            if read >= MAX_BYTES:
                break
        more = len(found) > len(rows)
        return RetainedPage(retained=rows, count=len(kept), more=more)

    @verb("mqtt.retained.show")
    def message(self, *, topic: str) -> RetainedView:
        """The message that a topic has retained; raises NothingRetained."""
        page, index = self._find(topic)
        return RetainedView(
            **asdict(_row(topic, page, index, page.batch.timestamps())),
            payload=page.payloads[index],
            headers=dict(_headers(page, index)),
            priority=page.priorities[index],
            producer=page.batch.producers()[index],
        )

    @verb("mqtt.retained.forget", Promise.STORED)
    def forget(self, *, topic: str) -> RetainedRow:
        """Retain the message of a topic no more; as it was. Its event stays.

        Raises NothingRetained.
        """
        page, index = self._find(topic)
        row = _row(topic, page, index, page.batch.timestamps())
        self._broker.retained.forget(topic)
        return row

    def _find(self, topic: str) -> tuple[Page, int]:
        """Where the message of a topic is."""
        offset = self._broker.retained.offset_of(topic)
        page = None if offset is None else self._broker.pages.at(TOPIC, offset)
        if offset is None or page is None:
            raise NothingRetained(topic)
        return page, page.batch.index_of(offset)


def _row(topic: str, page: Page, index: int, times: list[int]) -> RetainedRow:
    headers = _headers(page, index)
    qos, expires = headers.get(QOS), headers.get(EXPIRES, "")
    return RetainedRow(
        topic=topic,
        bytes=len(page.payloads[index]),
        published_ms=times[index],
        qos=int(qos) if qos in ("0", "1") else 2,
        expires_ms=_expires(page, index, expires),
    )


def _expires(page: Page, index: int, header: str) -> int | None:
    """When a message expires; of those of before a header says it."""
    if page.expires is not None and page.expires[index]:
        return page.expires[index]
    return int(header) if header.isdecimal() else None


def _headers(page: Page, index: int) -> Mapping[str, str]:
    common = page.common_headers
    return page.headers[index] if common is None else common
