from __future__ import annotations

import inspect
import pickle

import pytest

from penstock import errors
from penstock.errors import PenstockError

CASES: list[tuple[PenstockError, str]] = [
    (
        errors.InvalidOption("segment_bytes", 5, "at least 1024"),
        "option segment_bytes is 5: must be at least 1024",
    ),
    (errors.InvalidName("a\0", "is bad"), "topic name 'a\\x00' is bad"),
    (
        errors.MissingExtra("Arrow", "pyarrow", "arrow"),
        "Arrow needs pyarrow, which is not installed: pip install 'penstock[arrow]'",
    ),
    (
        errors.RemoteProtocolError("line", "event is not a JSON object"),
        "line protocol: event is not a JSON object",
    ),
    (
        errors.LocalProtocolError("native", "frame of 9 bytes exceeds 8"),
        "native protocol: frame of 9 bytes exceeds 8",
    ),
    (
        errors.UnknownSetting("file p.toml", "line.windo", "line.window"),
        "file p.toml: unknown setting line.windo, did you mean line.window?",
    ),
    (
        errors.InvalidSetting("line.window", 0, "at least 1", "file p.toml"),
        "file p.toml: line.window is 0: must be at least 1",
    ),
    (
        errors.BadConfigFile("p.toml", "Invalid value (at line 1, column 5)"),
        "configuration file p.toml: Invalid value (at line 1, column 5)",
    ),
    (
        errors.NotProtected("0.0.0.0"),
        "host 0.0.0.0 can be reached from other machines, and there is no users file",
    ),
    (errors.InvalidUser("a b", "is bad"), "user 'a b': is bad"),
    (
        errors.BadUsersFile("users", 3, "no password"),
        "users file users, line 3: no password",
    ),
    (errors.InvalidToken("a b", "is bad"), "token 'a b': is bad"),
    (errors.UnknownToken("shop"), "there is no token shop"),
    (
        errors.BadTokenFile("http-tokens.json", "not JSON"),
        "token file http-tokens.json: not JSON",
    ),
    (errors.BadRequest("the query is not UTF-8"), "the query is not UTF-8"),
    (errors.NoRoute("/v2"), "nothing is at /v2"),
    (
        errors.WrongMethod("PUT", "/v1/topics", ("GET", "POST")),
        "/v1/topics takes GET or POST, not PUT",
    ),
    (
        errors.NotAcceptable("image/png", ("application/json",)),
        "Accept is 'image/png': must be application/json",
    ),
    (
        errors.WrongMediaType("text/plain", ("application/json",)),
        "Content-Type is 'text/plain': must be application/json",
    ),
    (
        errors.TooSlow("the body", 60.0, "http.body_s"),
        "the body did not come within 60 s, http.body_s",
    ),
    (
        errors.NotAllowed("anna", "publish to", "sensors/x"),
        "user anna may not publish to sensors/x",
    ),
    (
        errors.Forged("it comes from a page of http://x"),
        (
            "the request is not from this server's pages: "
            "it comes from a page of http://x"
        ),
    ),
    (
        errors.TooManyAttempts("as anna from 10.0.0.1", 10, 12.4),
        "10 logins as anna from 10.0.0.1 have failed within a minute: wait 12 s",
    ),
    (
        errors.Busy(2000),
        "2000 logins wait to be checked, the limit: try again",
    ),
    (
        errors.TooMuchAsked("bytes of memory", 1 << 20, "http.sql_memory_bytes"),
        (
            "the question takes more than 1048576 bytes of memory, "
            "the limit of http.sql_memory_bytes"
        ),
    ),
    (
        errors.Misdirected("evil.example"),
        (
            "this server is not known as 'evil.example': Host must be one of its "
            "addresses, or be listed in http.allowed_hosts"
        ),
    ),
    (errors.Ending(), "the server is told to stop"),
    (
        errors.LimitReached("topics", 5, "max_topics"),
        "there are 5 topics, the limit of max_topics",
    ),
    (
        errors.QuotaReached("anna", "topics", 3),
        "user anna has reached its quota: topics is 3",
    ),
    (
        errors.QuotaReached("anna", "events_per_s", 3, 12.4),
        "user anna has reached its quota: events_per_s is 3, wait 12 s",
    ),
    (
        errors.ReservedName("$x"),
        "name $x is reserved: names that begin with $ are Penstock's",
    ),
    (errors.UnknownEvent("e1"), "there is no event e1"),
    (
        errors.UnknownSession("ann"),
        "client ann has no session",
    ),
    (
        errors.NothingRetained("a/b"),
        "topic a/b has no retained message",
    ),
    (
        errors.UnknownSubscription("me", "t"),
        "subscriber me has no subscription to t",
    ),
    (
        errors.WrongOrder("me", "t", "log", "priority"),
        "subscription of me to t gets events by priority, not as they were published",
    ),
    (
        errors.TakenInOrder("me", "t"),
        (
            "the subscription of me to t keeps its events in order, and another one "
            "consumes it"
        ),
    ),
    (
        errors.WrongQos("me", "t", 1, 2),
        "subscription of me to t has QoS 2, not 1",
    ),
    (
        errors.NotMoved("me", "t", "2 consume it"),
        "subscription of me to t is not moved: 2 consume it",
    ),
    (
        errors.MissingStage("q", 3, 1, 9),
        "epoch 3 of q: attempt 9 of partition 1 is not staged",
    ),
    (
        errors.UnknownDeadLetter(7, "does not exist"),
        "dead letter 7 does not exist",
    ),
    (errors.UnknownFailure(7), "the error log has no entry 7"),
    (errors.LoginRefused("who are you?"), "login refused: who are you?"),
    (
        errors.UnknownVerb("topic", "topics"),
        "nothing is called 'topic', did you mean topics?",
    ),
    (errors.UnknownVerb("x", ""), "nothing is called 'x'"),
    (errors.InvalidArgument("topics", "limit is 0"), "topics: limit is 0"),
    (errors.UnknownComment("t", 3), "topic t has no comment 3"),
    (
        errors.TooLarge("the schema", 70, 64, "max_schema_bytes"),
        "the schema has 70 bytes, max_schema_bytes is 64",
    ),
    (
        errors.InvalidSchema("$.type", '"text" is no type'),
        'not a schema: $.type: "text" is no type',
    ),
    (
        errors.InvalidPayload("t", 0, "$.a", "is required", 2),
        "payload does not fit version 2 of the schema of topic t: $.a: is required",
    ),
    (
        errors.InvalidPayload("t", 0, "$", "is not JSON", 2).at(3),
        (
            "payload does not fit version 2 of the schema of topic t: $: is not JSON "
            "(event 3 of the batch)"
        ),
    ),
    (
        errors.IncompatibleSchema("t", 1, "full", [("$.a", "no")]),
        "schema does not follow version 1 of topic t (mode full): $.a: no",
    ),
    (
        errors.IncompatibleSchema("t", 1, "full", [("$", "no")] * 7),
        "schema does not follow version 1 of topic t (mode full): "
        + "$: no; " * 5
        + "and 2 more",
    ),
    (errors.UnknownSchema("t"), "topic t has no schema"),
    (errors.UnknownSchema("t", 2), "topic t has no schema version 2"),
    (
        errors.UnsupportedSchema("$.a", "not"),
        "cannot make up data for this schema: $.a: not",
    ),
    (
        errors.TooMuchWork("7 steps", "broker.max_schema_steps"),
        "the schema takes more than 7 steps, the limit of broker.max_schema_steps",
    ),
    (
        errors.NotRunning("data directory d", "there is none"),
        "no server for data directory d: there is none",
    ),
    (
        errors.TlsFailed("h:1", "it speaks TLS there", "say penstock+tls://"),
        "cannot talk to h:1: it speaks TLS there",
    ),
    (
        errors.PartFailed("source", 2, "port 4000 is taken"),
        "source could not be started (exit code 2): port 4000 is taken",
    ),
    (
        errors.CaptureLost("db:5432/shop", "slot penstock_a", "0/1A"),
        "db:5432/shop does not know the changes since 0/1A: slot penstock_a is gone",
    ),
    (
        errors.StoreTaken("h:1/db", {"tweets": 3, "users": 1}),
        "store h:1/db holds documents of another run: 3 tweets, 1 users",
    ),
    (
        errors.OtherStore("data", "mongodb://h/a", "mongodb://h/b"),
        "data belongs to mongodb://h/a, not to mongodb://h/b",
    ),
    (
        errors.FeedMoved("cdc:shop", "0/1A"),
        "another writer has moved the feed cdc:shop to '0/1A'",
    ),
    (errors.ConnectionLost("h:1", "gone"), "connection to h:1 lost: gone"),
    (errors.SubscriptionEnded("t", "forgotten"), "subscription to t ended: forgotten"),
    (errors.HandlerError("no"), "no"),
    (
        errors.InvalidHandler("f (app.py:3)", "takes nothing"),
        "f (app.py:3) cannot be a handler: it takes nothing",
    ),
    (
        errors.SubscribedTwice("billing", "orders", "f (app.py:3)"),
        "domain billing subscribes to orders twice: the first handler is f (app.py:3)",
    ),
    (
        errors.StartedTwice("billing", "f (app.py:3)"),
        "domain billing runs already, with f (app.py:3)",
    ),
    (
        errors.UnfitPayload("orders", "Order", "Expected `int`"),
        "payload of orders is no Order: Expected `int`",
    ),
    (errors.GiveUp("no such customer"), "no such customer"),
    (errors.BrokerClosed(), "this broker is closed, or about to be"),
    (errors.NotSettled(2, ["a of t"]), "not settled within 2 s: a of t"),
    (
        errors.MissingJava(17, ["JAVA_HOME (x) has Java 11"]),
        "Spark needs Java 17 or newer: JAVA_HOME (x) has Java 11",
    ),
    (
        errors.UnfitFrame("value", "is missing"),
        "rows cannot be written to topics: column value is missing",
    ),
    (
        errors.BadRow(1, 2, "priority", 300, "must be from 0 to 255"),
        "row 2 of partition 1 cannot be written: priority 300: must be from 0 to 255",
    ),
    (errors.SparkError("no"), "no"),
    (
        errors.UnknownOption("startingOfsets", "startingOffsets"),
        "unknown option startingOfsets, did you mean startingOffsets?",
    ),
    (errors.UnknownOption("x", ""), "unknown option x"),
    (
        errors.MissingOption(("servers", "path")),
        "one of the options servers, path is needed",
    ),
    (
        errors.DataLost("t", "it was deleted"),
        "topic t: it was deleted (option failOnDataLoss is true)",
    ),
    (
        errors.SparkNotStarted("spark://h:7077", "it does not answer"),
        "no Spark at spark://h:7077: it does not answer",
    ),
    (
        errors.QueryFailed("tweets", "StoreRefused: no"),
        "the query tweets has failed: StoreRefused: no",
    ),
    (
        errors.OldCheckpoint("check", ("tweets", "running")),
        (
            "check was begun by an earlier version of the pipeline, whose queries "
            "(tweets, running) cannot be gone on with"
        ),
    ),
    (
        errors.Unreachable("h:1", 60.0, "nothing listens there"),
        "no broker at h:1 for 60 s (option retrySeconds): nothing listens there",
    ),
    (
        errors.InvalidQuery("there is no topic x", "did you mean y?"),
        "there is no topic x",
    ),
    (errors.IngestError("no"), "no"),
    (errors.UnfitSource("http://h", "no such host"), "http://h: no such host"),
    (errors.StoreError("no"), "no"),
    (errors.InvalidStore("ftp://h", "no store"), "store ftp://h: no store"),
    (errors.BadDocument("t", "k", "no JSON"), "document 'k' of t: no JSON"),
    (errors.StoreRefused("pg://h", "no"), "store pg://h refuses: no"),
    (errors.StoreNotStarted("d", "full"), "no PostgreSQL over d: full"),
    (
        errors.StoreUnreachable("pg://h", 60.0, "refused"),
        "no store at pg://h for 60 s: refused",
    ),
    (errors.ServerRefused("UnknownTopic", "no such topic"), "no such topic"),
    (errors.UnknownTopic("t"), "topic t does not exist"),
    (errors.TopicExists("t"), "topic t exists already"),
    (
        errors.OffsetOutOfRange("t", 9, 2, 5),
        "offset 9 of topic t is outside 2..5",
    ),
    (
        errors.InvalidBatch("payload size", 9, "at most 5"),
        "payload size is 9: must be at most 5",
    ),
    (errors.BeingDeleted("t"), "topic t is being deleted"),
    (errors.Backlogged(30, 20), "30 bytes wait to be written, the limit is 20"),
    (
        errors.CorruptRecord("f.seg", 8, 4, "bad"),
        "f.seg: 4 bytes at 8 are damaged: bad",
    ),
    (
        errors.UnsupportedVersion("f", 3, 1),
        "f has format version 3, this Penstock reads up to 1",
    ),
    (
        errors.UnownedRecords(300),
        "the journal holds records of kind 300, which has no owner here",
    ),
    (
        errors.DirectoryLocked("d", 77),
        "data directory d is held by process 77",
    ),
    (errors.NotADataDirectory("d"), "d is not a Penstock data directory"),
    (
        errors.Moved("d"),
        "d was removed or used again by the writer while it was read",
    ),
    (errors.LogClosed("d"), "the log d is closed"),
    (
        errors.WriteFailed("f", "syncing", "Input/output error"),
        "syncing f failed: Input/output error",
    ),
    (
        errors.DiskFull("f", "writing", "No space left on device"),
        "writing f failed: No space left on device",
    ),
    (
        errors.InDoubt("the journal", 7, "no answer came"),
        "whether group 7 is in the journal is not known yet: no answer came",
    ),
    (
        errors.Fenced("the journal", "appending to", "another writer has taken over"),
        "appending to the journal failed: another writer has taken over",
    ),
]
FAMILIES = {
    errors.PenstockError,
    errors.ConfigError,
    errors.ProtocolError,
    errors.BrokerError,
    errors.SchemaError,
    errors.ClientError,
    errors.HttpError,
    errors.LogError,
}
RETRIABLE = {
    errors.InDoubt,
    errors.Backlogged,
    errors.BeingDeleted,
    errors.Moved,
    errors.NotSettled,
    errors.Ending,
    errors.TooManyAttempts,
    errors.Busy,
    errors.StoreUnreachable,
    errors.TakenInOrder,
    errors.QueryFailed,
    errors.SparkNotStarted,
    errors.Unreachable,
    errors.WriteFailed,
    errors.DiskFull,
}


def classes() -> set[type[PenstockError]]:
    members = vars(errors).values()
    return {m for m in members if inspect.isclass(m) and issubclass(m, PenstockError)}


@pytest.mark.parametrize(("error", "text"), CASES, ids=lambda c: type(c).__name__)
def test_message_names_the_thing_the_value_and_the_bound(
    error: PenstockError, text: str
) -> None:
    assert str(error) == text


def test_every_error_has_a_case_here() -> None:
    assert {type(error) for error, _ in CASES} == classes() - FAMILIES


def test_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    assert errors.__doc__ is not None
    drawn = [
        (line.index(line.lstrip("│├└─ ")) // 4, line.lstrip("│├└─ ").split()[0])
        for line in errors.__doc__.splitlines()
        if line.startswith("    ")
    ]
    parents: list[str] = []
    for depth, name in drawn:
        del parents[depth - 1 :]
        kind = getattr(errors, name)
        assert [c.__name__ for c in kind.__mro__[1:-3]] == parents[::-1], name
        parents.append(name)

    assert {name for _, name in drawn} == {kind.__name__ for kind in classes()}


def test_only_what_may_succeed_later_is_retriable() -> None:
    assert {kind for kind in classes() if kind.retriable} == RETRIABLE


@pytest.mark.parametrize("error", [e for e, _ in CASES], ids=lambda e: type(e).__name__)
def test_error_survives_the_way_to_another_process(error: PenstockError) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert vars(copy) == vars(error)


def test_holder_that_is_not_known_is_another_process() -> None:
    error = errors.DirectoryLocked("d", None)

    assert str(error) == "data directory d is held by another process"


def test_long_name_is_not_repeated_in_full() -> None:
    assert len(str(errors.InvalidName("x" * 10_000, "is too long"))) < 120


def test_without_a_near_match_nothing_is_suggested() -> None:
    error = errors.UnknownSetting("file p.toml", "xyz", "")

    assert str(error) == "file p.toml: unknown setting xyz"


def test_long_value_of_a_setting_is_not_repeated_in_full() -> None:
    error = errors.InvalidSetting("line.window", "x" * 10_000, "a number", "file f")

    assert len(str(error)) < 150


def test_a_client_is_told_no_path() -> None:
    error = errors.DiskFull("/srv/data/journal/0.jnl", "writing", "No space left")

    assert error.for_client == "writing a file of the server failed: No space left"
    assert "/srv/data" in str(error)
    assert errors.InvalidName("a/b", "is odd").for_client == str(
        errors.InvalidName("a/b", "is odd")
    )


@pytest.mark.parametrize(
    "error", [e for e, _ in CASES if e.fields], ids=lambda e: type(e).__name__
)
def test_fields_may_be_given_by_name(error: PenstockError) -> None:
    names = inspect.signature(type(error)).parameters
    fields = error.fields if "values" in names else tuple(names)
    named = {name: getattr(error, name) for name in fields}

    made = type(error)(**named)

    assert vars(made) == vars(error)
    assert made.args == error.args


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        (("a", "b"), {}),
        (("a",), {"topic": "a"}),
        (("a",), {"name": "b"}),
        ((), {"name": "b"}),
    ],
)
def test_fields_that_an_error_does_not_have_are_refused(
    values: tuple[str, ...], named: dict[str, str]
) -> None:
    with pytest.raises(TypeError, match=r"UnknownTopic\(\) takes topic"):
        errors.UnknownTopic(*values, **named)
