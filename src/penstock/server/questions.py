"""Questions in SQL, each answered by a process of its own.

DuckDB's own limits do not hold, and a question must not cost the broker its memory, its
loop or its life: so it is asked elsewhere, and ended by force when its time is over or
no client waits for it any more. The process reads the files of the data directory, as
every reader does, and gets nothing of this one: no socket, no file, no environment.

A thread talks to it. It is started by ``Popen``, which takes a millisecond, and not by
the loop's own function for that: uvloop would copy the tables of all our memory, which
takes a quarter of a second for 2 GiB.

A token or user holds half of the places at most, so that there is one for another.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import msgspec

from penstock import sql
from penstock.errors import InvalidQuery, LimitReached, PenstockError
from penstock.http.options import HttpOptions
from penstock.sql.question import (
    ANSWERED,
    PROGRAM,
    REFUSED,
    SqlQuestion,
    SqlRefusal,
    error_of,
    too_long,
    too_much_memory,
)

logger = logging.getLogger(__name__)

# Beside the rows: notes, and names of the parts of an answer.
MORE_BYTES = 1 << 18
# Signals by which the kernel says that its time is over.
_OVER = (signal.SIGALRM, signal.SIGXCPU)
# Those by which a process ends that gets no memory.
_NO_MEMORY = (signal.SIGKILL, signal.SIGABRT)


class QuestionProcesses:
    """Starts them, so many at a time; they are gone when their answer is."""

    def __init__(self, data: str, options: HttpOptions) -> None:
        self._data = str(Path(data).absolute())
        self._options = options
        self._running: Counter[str] = Counter()
        """Questions by the token or user that asked them."""
        most = max(options.sql_questions, 1)
        self._threads = ThreadPoolExecutor(most, "penstock-sql")

    def check(self) -> None:
        """Raises MissingExtra, or LimitReached if there are never any."""
        sql.check_installed()
        if not self._options.sql_questions:
            raise self._enough()

    async def answer(
        self,
        query: str,
        topics: Sequence[str],
        schemas: Mapping[str, str],
        asker: str = "",
    ) -> bytes:
        """What a process writes of these topics; ends it if this is cancelled."""
        self.check()
        self._check_place(asker)
        self._running[asker] += 1
        try:
            async with asyncio.timeout(self._options.sql_s):
                return await self._asked(self._question(query, topics, schemas))
        except TimeoutError:
            raise too_long(self._options.sql_s) from None
        finally:
            self._running -= Counter([asker])  # names without any are let go of

    def _check_place(self, asker: str) -> None:
        most = self._options.sql_questions
        if self._running.total() >= most:
            raise self._enough()
        half = max(most // 2, 1)
        if asker and self._running[asker] >= half:
            what = f"questions in SQL of {asker}"
            raise LimitReached(what, half, "half of http.sql_questions")

    def _enough(self) -> LimitReached:
        limit = self._options.sql_questions
        return LimitReached("questions in SQL", limit, "http.sql_questions")

    def _question(
        self, query: str, topics: Sequence[str], schemas: Mapping[str, str]
    ) -> SqlQuestion:
        return SqlQuestion(
            data=self._data,
            query=query,
            topics=list(topics),
            schemas=dict(schemas),
            seconds=self._options.sql_s,
            memory_bytes=self._options.sql_memory_bytes,
            rows=self._options.sql_rows,
            answer_bytes=self._options.sql_answer_bytes,
        )

    async def _asked(self, question: SqlQuestion) -> bytes:
        most = self._options.sql_answer_bytes + MORE_BYTES
        process = _started()
        talk = asyncio.get_running_loop().run_in_executor(
            self._threads, _talk, process, msgspec.json.encode(question), most
        )
        try:
            code, written = await asyncio.shield(talk)
        except BaseException:
            process.kill()
            await asyncio.gather(talk, return_exceptions=True)
            raise
        if code == ANSWERED:
            return written
        if code == REFUSED:
            raise error_of(msgspec.json.decode(written, type=SqlRefusal))
        if code < 0:
            raise self._killed(-code)
        text = written.decode(errors="replace")
        raise RuntimeError(f"a question has ended with {code}: {text}")

    def _killed(self, number: int) -> PenstockError:
        """Not by us: by the kernel, or by a library that got no memory."""
        if number in _OVER:
            return too_long(self._options.sql_s)
        name = f"signal {number} ({signal.strsignal(number)})"
        logger.warning(
            "a question in SQL was killed by %s",
            name,
            extra={"action": "question_killed", "signal": number},
        )
        if number in _NO_MEMORY:
            return too_much_memory(self._options.sql_memory_bytes)
        return InvalidQuery(f"what answered the question was ended by {name}")


def _started() -> Popen[bytes]:
    return Popen(
        [sys.executable, "-P", "-m", PROGRAM],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=_environment(),
        start_new_session=True,  # Ctrl-C is for the server
    )


def _environment() -> dict[str, str]:
    """All of it: where modules are, and that Arrow sets no memory aside."""
    path = os.pathsep.join(filter(None, sys.path))
    return {"PYTHONPATH": path, "ARROW_DEFAULT_MEMORY_POOL": "system"}


def _talk(process: Popen[bytes], question: bytes, most: int) -> tuple[int, bytes]:
    """Its exit code, and what it has written; in a thread."""
    with process:
        assert process.stdin is not None and process.stdout is not None, "pipes"
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(question)
        written = process.stdout.read(most + 1)
        if len(written) > most:
            process.kill()
            raise RuntimeError(f"an answer in SQL is longer than {most} bytes")
        return process.wait(), written
