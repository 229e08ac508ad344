"""Publishing lines of events: the body may have no end, the answers keep its order.

Every line is an event and gets a line in answer when it is on disk: ``offset`` and
``id``, or what is wrong with it; then the next one is not affected. Lines are stored
as they arrive, a read of the socket at a time, and what one commit has made true is
said in one write. A line that its sender did not end counts only if the body was
ended: of a torn request nothing is guessed.

A client that sends very many lines has to read answers meanwhile: when those of so many
lines wait, no more are taken in. What waits is where the events are, and costs little;
the answers themselves are made when they can be sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.broker.promised import has_ended, is_lost
from penstock.errors import Ending, WriteFailed
from penstock.http.call import Call
from penstock.http.house import House
from penstock.http.line_intake import Answers, LineIntake, refusal
from penstock.http.notifier import Notifier
from penstock.http.pacing import paced
from penstock.http.trace_context import context_of

MEDIA_TYPE = "application/x-ndjson"
MEDIA_TYPES = frozenset(
    {MEDIA_TYPE, "application/ndjson", "application/jsonl", "application/json-lines"}
)
# A body that is not longer is taken in at once.
GATHER_BYTES = 1 << 20
# Lines that wait for their commit, or for their answers to be read: some clients do not
# read before they have sent all they have.
MOST_WAITING = 100_000
# About what is sent at once.
WRITE_BYTES = 1 << 18
# How often a task that waits for answers looks whether it is still needed.
PATIENCE_S = 60.0


async def publish_lines(call: Call) -> Response:
    """Publish the lines of a body."""
    length = call.request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > GATHER_BYTES:
        return LinesResponse(call)
    most_s = call.house.options.body_s
    await paced(call.account, most_s)
    intake = _intake(call, most_s)
    answers = await intake.take_in(await call.body(), last=True)
    data = b""
    if answers is not None:
        data = await _when_kept(call.house, answers)
    return Response(data, 200, media_type=MEDIA_TYPE)


class LinesResponse(Response):
    """Takes lines in and answers them at the same time, until the body ends."""

    media_type = MEDIA_TYPE

    def __init__(self, call: Call) -> None:
        """Raises LimitReached: it counts as an open stream from now on."""
        super().__init__(status_code=200)
        del self.headers["content-length"]
        self._house = call.house
        self._intake = _intake(call)
        self._waiting: deque[Answers] = deque()
        self._lines = 0
        """How many lines they are about."""
        self._alive = False
        """Whether something came since the writer looked."""
        self._more = Notifier()
        """Rings when there are answers to wait for, or no more will be."""
        self._fewer = Notifier()
        """Rings when answers have left."""
        self._ended = False
        self._unread = False
        """Whether the client does not read its answers."""
        self._open = ExitStack()
        self._guest = self._open.enter_context(
            call.house.opened.one(call.still, call.account)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._open:
            async with asyncio.TaskGroup() as tasks:
                # Before we answer: a client asking whether to send its body is told so.
                reader = tasks.create_task(self._read(receive))
                await asyncio.sleep(0)
                await send(
                    {
                        "type": "http.response.start",
                        "status": self.status_code,
                        "headers": self.raw_headers,
                    }
                )
                writer = tasks.create_task(self._write(send, reader))
                ender = tasks.create_task(self._until_ended(reader))
                await asyncio.wait({reader})
                ender.cancel()
                self._ended = True
                self._more.notify()
                if not reader.cancelled() and not reader.result():
                    writer.cancel()  # no client is there to be answered
            if self._unread:
                return  # an answer that is not whole must not look so
            rest = b""
            if reader.cancelled():
                why = self._guest.revoked or Ending()
                rest = refusal(why, self._intake.lines + 1)
            await send({"type": "http.response.body", "body": rest})

    async def _until_ended(self, reader: asyncio.Task[bool]) -> None:
        """Take no more when server or login end; what was stored is still answered."""
        await self._guest.ended.wait()
        reader.cancel()

    async def _read(self, receive: Receive) -> bool:
        """Take lines in until the body ends; False if its sender is gone."""
        while True:
            message = await receive()
            self._alive = True
            if message["type"] == "http.disconnect":
                return False
            last = not message.get("more_body", False)
            answers = await self._intake.take_in(message.get("body", b""), last=last)
            if answers is not None:
                self._waiting.append(answers)
                self._lines += answers.lines
                self._more.notify()
            if last:
                return True
            while self._lines >= MOST_WAITING:
                await self._fewer.wait(PATIENCE_S)

    async def _write(self, send: Send, reader: asyncio.Task[bool]) -> None:
        """Say what has come true, as much as is right for a write."""
        while self._waiting or not self._ended:
            if not self._waiting:
                await self._more.wait(PATIENCE_S)
                continue
            body = await self._next()
            if not await self._sent(send, body):
                self._unread = True
                reader.cancel()
                return

    async def _next(self) -> bytes:
        """Answers that may go, in their order."""
        parts = [await _when_kept(self._house, self._waiting[0])]
        size = len(parts[0])
        self._lines -= self._waiting.popleft().lines
        while self._waiting and size < WRITE_BYTES:
            group, log = self._waiting[0].group, self._house.broker.log
            if not has_ended(log, group) or is_lost(log, group):
                break
            answers = self._waiting.popleft()
            parts.append(answers.said())
            size += len(parts[-1])
            self._lines -= answers.lines
        self._fewer.notify()
        return b"".join(parts)

    async def _sent(self, send: Send, body: bytes) -> bool:
        """False if the client has neither read nor sent anything for too long."""
        message = {"type": "http.response.body", "body": body, "more_body": True}
        while True:
            self._alive = False
            try:
                async with asyncio.timeout(self._house.options.stream_idle_s):
                    await send(message)
                return True
            except TimeoutError:
                if not self._alive:
                    return False


def _intake(call: Call, most_s: float | None = None) -> LineIntake:
    return LineIntake(
        call.house,
        call.path["topic"],
        call.who.name or None,
        context_of(call.request.headers.raw),
        call.account,
        most_s,
    )


async def _when_kept(house: House, answers: Answers) -> bytes:
    if answers.group:
        try:
            await house.promises.kept(answers.group)
        except WriteFailed as error:
            return answers.lost(error)
    return answers.said()
