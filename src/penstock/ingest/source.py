"""A stream of server-sent events from a URL, connected again whenever it breaks off.

The id of the last event is sent along, so a server that knows it goes on behind it. A
stream is over when the server says 204 (WHATWG HTML 9.2.4). What a second try cannot
better is an error: no such address, a refusal, an answer that is no event stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random

import aiohttp

from penstock.errors import UnfitSource
from penstock.ingest.options import Address
from penstock.wire.sse import ServerSentEvent, SseParser

# Until the server says something else.
BASE_S = 0.5
LEAST_S = 0.05
MOST_S = 30.0


class Backoff:
    """Doubles with every failure, up to a bound; half of it is left to chance.

    A server that says ``retry`` sets where it begins.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._base_s = BASE_S
        self._failures = 0

    def retry(self, retry_ms: int | None) -> None:
        """What the server asks for; None: nothing."""
        if retry_ms is not None:
            self._base_s = min(max(retry_ms / 1000, LEAST_S), MOST_S)

    def succeeded(self) -> None:
        """Events came."""
        self._failures = 0

    def next_s(self) -> float:
        # The bound keeps the power small, however often it has failed.
        doubled_s = self._base_s * (1 << min(self._failures, 16))
        self._failures += 1
        return min(doubled_s, MOST_S) * (0.5 + self._random.random() / 2)


logger = logging.getLogger(__name__)

# Of longer events only the beginning is kept, as a dead letter.
MAX_EVENT_BYTES = 16 << 20
CONNECT_S = 10.0
READ_BYTES = 1 << 18
EVENT_STREAM = "text/event-stream"
ENDED = "the server ended it"
# A server may be better soon that says: timeout, too early, too many requests.
PASSING = frozenset({408, 425, 429})


class StreamSource:
    """One stream. ``connected`` and ``failures`` are for the status."""

    def __init__(
        self,
        address: Address,
        last_event_id: str,
        *,
        silence_s: float,
        random: Random | None = None,
    ) -> None:
        self.connected = False
        self.failures = 0
        self._address = address
        self._last_event_id = last_event_id
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_S, sock_read=silence_s or None
        )
        self._backoff = Backoff(random or Random())
        self._known = False

    async def events(self) -> AsyncGenerator[list[ServerSentEvent], None]:
        """Events as they come, until the stream is over. Raises UnfitSource."""
        async with aiohttp.ClientSession(
            timeout=self._timeout, read_bufsize=READ_BYTES
        ) as session:
            while True:
                try:
                    async with self._get(session) as response:
                        if self._is_over(response):
                            return
                        async with aclosing(self._read(response)) as read:
                            async for events in read:
                                yield events
                    reason = ENDED
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    reason = self._passing(error)
                finally:
                    self.connected = False
                await self._wait(reason)

    def _get(
        self, session: aiohttp.ClientSession
    ) -> aiohttp.client._RequestContextManager:
        headers = {
            "Accept": EVENT_STREAM,
            "Accept-Encoding": "identity",
            "Cache-Control": "no-store",
        }
        if self._last_event_id:
            headers["Last-Event-ID"] = self._last_event_id
        return session.get(self._address.url, headers=headers)

    def _is_over(self, response: aiohttp.ClientResponse) -> bool:
        """Whether the stream has ended for good; raises if it never was one."""
        status, shown = response.status, self._address.shown
        if status == 204:
            logger.info("%s is over", shown, extra={"action": "source_over"})
            return True
        if status >= 500 or status in PASSING:
            raise aiohttp.ClientPayloadError(f"the server says {status}")
        if status != 200:
            said = f"the server says {status} {response.reason or ''}".rstrip()
            raise UnfitSource(shown, said)
        if response.content_type != EVENT_STREAM:
            said = f"content is {response.content_type}, not {EVENT_STREAM}"
            raise UnfitSource(shown, said)
        logger.info("connected to %s", shown, extra={"action": "source_connected"})
        self.connected = self._known = True
        return False

    async def _read(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[list[ServerSentEvent], None]:
        parser = SseParser(MAX_EVENT_BYTES, self._last_event_id)
        async for data in response.content.iter_any():
            events = parser.feed(data)
            self._last_event_id = parser.last_event_id
            self._backoff.retry(parser.retry_ms)
            if events:
                self._backoff.succeeded()
                yield events

    def _passing(self, error: Exception) -> str:
        """Why it failed; raises UnfitSource if it would fail again."""
        shown = self._address.shown
        if isinstance(error, aiohttp.InvalidURL | aiohttp.TooManyRedirects):
            raise UnfitSource(shown, "no address that can be asked") from error
        if isinstance(error, aiohttp.ClientConnectorDNSError) and not self._known:
            raise UnfitSource(shown, "no such host") from error
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            raise UnfitSource(shown, "its certificate is not trusted") from error
        self.failures += 1
        if isinstance(error, TimeoutError):
            return "nothing came for too long"
        return str(error) or type(error).__name__

    async def _wait(self, reason: str) -> None:
        delay_s = self._backoff.next_s()
        logger.log(
            logging.INFO if reason == ENDED else logging.WARNING,
            "%s: %s; connecting again in %.1f s",
            self._address.shown,
            reason,
            delay_s,
            extra={"action": "source_lost"},
        )
        await asyncio.sleep(delay_s)
