"""Every error Penstock raises on purpose.

    PenstockError
    ├── InvalidOption         a setting has a value outside its limits
    ├── InvalidName           a topic name that cannot be one
    ├── MissingExtra          an optional dependency is not installed
    └── LogError              the log on disk
        ├── UnknownTopic
        ├── TopicExists
        ├── OffsetOutOfRange
        ├── InvalidBatch      events that cannot be stored as they are
        ├── Backlogged        more waits to be written than the limit allows (retriable)
        ├── CorruptRecord     bytes that fail their checksum or make no sense
        ├── UnsupportedVersion
        ├── UnownedRecords    the journal holds records nobody at hand can replay
        ├── DirectoryLocked   another process writes this data directory
        ├── NotADataDirectory
        ├── Moved             the writer removed what a reader looked at (retriable)
        ├── LogClosed
        └── WriteFailed       a write or sync failed, nothing of it counts (retriable)
            └── DiskFull

Fields first, text in ``__str__``; ``hint`` says what a person can do;
``retriable`` says whether the same call may succeed later.
"""

from __future__ import annotations

from typing import ClassVar


class PenstockError(Exception):
    """Root of the tree."""

    hint: ClassVar[str] = ""
    retriable: ClassVar[bool] = False


class InvalidOption(PenstockError):
    def __init__(self, name: str, value: object, limit: str) -> None:
        super().__init__(name, value, limit)
        self.name = name
        self.value = value
        self.limit = limit

    def __str__(self) -> str:
        return f"option {self.name} is {self.value!r}: must be {self.limit}"


class InvalidName(PenstockError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"topic name {self.name[:80]!r} {self.reason}"


class MissingExtra(PenstockError):
    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(feature, package, extra)
        self.feature = feature
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return (
            f"{self.feature} needs {self.package}, which is not installed: "
            f"pip install 'penstock[{self.extra}]'"
        )


class LogError(PenstockError):
    """The log on disk."""


class UnknownTopic(LogError):
    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return f"topic {self.topic} does not exist"


class TopicExists(LogError):
    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return f"topic {self.topic} exists already"


class OffsetOutOfRange(LogError):
    def __init__(self, topic: str, offset: int, start: int, end: int) -> None:
        super().__init__(topic, offset, start, end)
        self.topic = topic
        self.offset = offset
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return (
            f"offset {self.offset} of topic {self.topic} is outside "
            f"{self.start}..{self.end}"
        )


class InvalidBatch(LogError):
    def __init__(self, field: str, value: object, limit: str) -> None:
        super().__init__(field, value, limit)
        self.field = field
        self.value = value
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.field} is {self.value}: must be {self.limit}"


class Backlogged(LogError):
    retriable = True
    hint = "wait for the running commit, then append again"

    def __init__(self, waiting_bytes: int, limit_bytes: int) -> None:
        super().__init__(waiting_bytes, limit_bytes)
        self.waiting_bytes = waiting_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        if not self.limit_bytes:
            return f"other work is under way, {self.waiting_bytes} bytes wait for it"
        return (
            f"{self.waiting_bytes} bytes wait to be written, "
            f"the limit is {self.limit_bytes}"
        )


class CorruptRecord(LogError):
    def __init__(self, file: str, position: int, length: int, reason: str) -> None:
        super().__init__(file, position, length, reason)
        self.file = file
        self.position = position
        self.length = length
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.file}: {self.length} bytes at {self.position} are damaged: "
            f"{self.reason}"
        )


class UnsupportedVersion(LogError):
    hint = "open the directory with the version of Penstock that wrote it"

    def __init__(self, file: str, version: int, supported: int) -> None:
        super().__init__(file, version, supported)
        self.file = file
        self.version = version
        self.supported = supported

    def __str__(self) -> str:
        return (
            f"{self.file} has format version {self.version}, "
            f"this Penstock reads up to {self.supported}"
        )


class UnownedRecords(LogError):
    hint = "open the log with the owners that wrote these records"

    def __init__(self, kind: int) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        return f"the journal holds records of kind {self.kind}, which has no owner here"


class DirectoryLocked(LogError):
    hint = "stop that process, or use another data directory"

    def __init__(self, path: str, pid: int | None) -> None:
        super().__init__(path, pid)
        self.path = path
        self.pid = pid

    def __str__(self) -> str:
        holder = f"process {self.pid}" if self.pid else "another process"
        return f"data directory {self.path} is held by {holder}"


class NotADataDirectory(LogError):
    hint = "give the directory that holds journal/ and topics/"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} is not a Penstock data directory"


class Moved(LogError):
    retriable = True
    hint = "read again: the writer removes files faster than they can be read"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} was removed or used again by the writer while it was read"


class LogClosed(LogError):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"the log {self.path} is closed"


class WriteFailed(LogError):
    """A write or sync failed; nothing of it was confirmed."""

    retriable = True

    def __init__(self, file: str, action: str, reason: str) -> None:
        super().__init__(file, action, reason)
        self.file = file
        self.action = action
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.action} {self.file} failed: {self.reason}"


class DiskFull(WriteFailed):
    hint = "free some room; the log accepts again by itself"
