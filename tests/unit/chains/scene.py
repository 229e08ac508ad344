"""A log with chains in it, for the tests of their index."""

from __future__ import annotations

import random
from pathlib import Path

from penstock.chains import ChainQuestion, Chains
from penstock.chains.filling import Filler
from penstock.chains.store import ChainIndex
from penstock.files import FileSystem
from penstock.log import Columns, GroupCommit, Log, TopicOptions

NOW_MS = 1_700_000_000_000


class Scene:
    """``publish`` returns ids; ``ask`` says what was found as TOPIC:OFFSET."""

    def __init__(self, folder: Path, *, files: FileSystem | None = None) -> None:
        self.folder = folder
        self._files = files
        self._random = random.Random(7)
        self.cut: str | None = None
        self.open()

    def open(self) -> None:
        self.log = Log.open(
            self.folder, files=self._files, entropy=self._random.randbytes
        )
        self.chains = Chains(self.log)
        self.log.on_commit = self._note

    def _note(self, commit: GroupCommit) -> None:
        for topic, *_ in commit.counts():
            self.chains.note(topic)

    def close(self) -> None:
        self.chains.abandon()
        self.log.abandon()

    @property
    def filler(self) -> Filler:
        assert self.chains._filler is not None
        return self.chains._filler

    @property
    def store(self) -> ChainIndex:
        assert self.chains._store is not None
        return self.chains._store

    def topic(self, name: str, **options: object) -> None:
        small = {"segment_bytes": 1024, **options}
        self.log.create_topic(name, TopicOptions(**small))  # type: ignore[arg-type]

    def publish(
        self,
        topic: str,
        count: int = 1,
        *,
        ids: list[str | None] | None = None,
        parents: list[str | None] | None = None,
        keys: list[bytes | None] | None = None,
        at_ms: int = NOW_MS,
    ) -> list[str]:
        """One committed batch; the ids of its events."""
        if not self.log.has_topic(topic):
            self.topic(topic)
        payloads = [b"payload %d" % number for number in range(count)]
        columns = Columns(payloads, at_ms, ids=ids, parents=parents, keys=keys)
        appended = self.log.append(topic, columns)
        self.log.commit()
        given = ids or [None] * count
        return [
            appended.generated_id(index) if id_ is None else id_
            for index, id_ in enumerate(given)
        ]

    def fill(self) -> int:
        """Index all there is; the number of steps."""
        steps = 1
        while self.chains.step():
            steps += 1
        return steps

    def ask(self, id: str | None = None, **question: object) -> dict[str, int]:
        """Place and level of everything found."""
        asked = ChainQuestion(id=id, **question)  # type: ignore[arg-type]
        number, walk = self.chains.ask(asked)
        found = walk.take()
        while not walk.done:
            assert self.chains.go_on(number) is walk
            found += walk.take()
        self.cut = walk.cut
        return {
            f"{one.hit.topic.name}:{one.hit.event.base_offset}": one.level
            for one in found
        }
