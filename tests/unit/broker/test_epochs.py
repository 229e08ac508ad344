from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Grants
from penstock.access.quota import Quota
from penstock.broker.broker import Broker
from penstock.broker.epochs import abort, commit, stage
from penstock.broker.options import BrokerOptions
from penstock.delivery.letters import DeadLetter
from penstock.errors import (
    InvalidBatch,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    LimitReached,
    MissingStage,
    PenstockError,
    QuotaReached,
    ReservedName,
)
from penstock.log import Columns, Log, TopicOptions
from tests.unit.desk.office import Office


def put(
    office: Office,
    *payloads: bytes,
    epoch: int = 0,
    part: tuple[int, int] = (0, 0),
    number: int = 0,
    topic: str = "t",
    query: str = "q",
) -> bool:
    columns = Columns(payloads, int(office.now_s * 1000))
    return stage(
        office.broker, query, epoch, part, number, topic, columns, office.now_s
    )


def stored(office: Office, topic: str = "t") -> list[bytes]:
    if not office.broker.log.has_topic(topic):
        return []
    batches = office.broker.log.read(topic, 0)
    return [payload for batch in batches for payload in batch.payloads()]


def test_nothing_is_stored_before_the_commit(office: Office) -> None:
    assert put(office, b"a")
    office.commit()

    assert stored(office) == []


def test_an_epoch_is_stored_whole_over_topics_and_parts(office: Office) -> None:
    put(office, b"a", b"b", part=(0, 7))
    put(office, b"c", part=(0, 7), number=1)
    put(office, b"d", part=(1, 9), topic="u")
    put(office, b"lost", part=(1, 8))
    put(office, part=(2, 0))

    done = commit(office.broker, "q", 0, [(0, 7), (1, 9), (2, 0)])
    office.commit()

    assert done is not None
    assert done.events == 4
    assert (stored(office), stored(office, "u")) == ([b"a", b"b", b"c"], [b"d"])
    assert office.broker.sinks.staging.bytes == 0


@pytest.mark.parametrize("crash", [False, True])
def test_events_expire_as_their_topic_says_from_their_commit_on(
    office: Office, crash: bool
) -> None:
    office.broker.create_topic("t", TopicOptions(expires_s=1.5))
    for number, expires in enumerate((None, [7, None], [8, 9])):
        for _ in range(2):  # the writer is not sure, and repeats it later
            columns = Columns([b"a", b"b"], int(office.now_s * 1000), expires=expires)
            stage(office.broker, "q", 0, (0, 0), number, "t", columns, office.now_s)
            office.clock.advance(5.0)

    commit(office.broker, "q", 0, [(0, 0)])
    office.commit()
    if crash:
        office.restart()

    due_ms = int(office.now_s * 1000) + 1500
    batches = office.broker.log.read("t", 0)
    assert [time for batch in batches for time in batch.expires()] == [
        *(due_ms, due_ms),
        *(7, due_ms),
        *(8, 9),
    ]


def test_events_and_epoch_are_in_one_group(office: Office) -> None:
    put(office, b"a")
    group = office.broker.group

    commit(office.broker, "q", 0, [(0, 0)])

    assert (office.broker.group, office.broker.promised) == (group, group)
    office.fail_commit()
    assert (stored(office), office.broker.sinks.last("q")) == ([], None)


def test_after_a_failed_write_the_epoch_can_be_committed_again(office: Office) -> None:
    put(office, b"a")
    commit(office.broker, "q", 0, [(0, 0)])
    office.fail_commit()

    assert commit(office.broker, "q", 0, [(0, 0)]) is not None
    office.commit()

    assert stored(office) == [b"a"]


@pytest.mark.parametrize("crash", [False, True])
def test_an_epoch_that_is_stored_is_not_stored_again(
    office: Office, crash: bool
) -> None:
    put(office, b"a", epoch=3)
    commit(office.broker, "q", 3, [(0, 0)])
    office.commit()
    if crash:
        office.restart()

    for epoch in (2, 3):
        assert not put(office, b"a", epoch=epoch)
        assert commit(office.broker, "q", epoch, [(0, 0)]) is None
    office.commit()

    assert stored(office) == [b"a"]
    assert office.broker.sinks.staging.bytes == 0


def test_an_epoch_that_may_be_taken_back_is_staged_all_the_same(
    office: Office,
) -> None:
    put(office, b"a")
    commit(office.broker, "q", 0, [(0, 0)])

    assert put(office, b"b", part=(0, 1))
    assert commit(office.broker, "q", 0, [(0, 1)]) is None
    office.fail_commit()

    assert commit(office.broker, "q", 0, [(0, 1)]) is not None
    office.commit()
    assert stored(office) == [b"b"]


def test_what_is_left_of_an_epoch_that_was_stored_goes_with_the_next_question(
    office: Office,
) -> None:
    put(office, b"a")
    commit(office.broker, "q", 0, [(0, 0)])
    office.commit()
    put(office, b"x", query="other")
    commit(office.broker, "other", 0, [(0, 0)])
    assert put(office, b"late", part=(0, 1))  # nobody can be sure in the meantime
    office.commit()

    assert commit(office.broker, "q", 0, [(0, 1)]) is None

    assert office.broker.sinks.staging.get("q", 0) is None
    assert stored(office) == [b"a", b"x"]


def test_a_part_that_is_missing_stores_nothing(office: Office) -> None:
    put(office, b"a", part=(0, 0))

    with pytest.raises(MissingStage):
        commit(office.broker, "q", 0, [(0, 0), (1, 0)])

    office.commit()
    assert (stored(office), office.broker.sinks.last("q")) == ([], None)
    assert office.broker.log.topics() == []


def test_a_crash_loses_what_was_staged_and_says_so(office: Office) -> None:
    put(office, b"a")
    office.restart()

    with pytest.raises(MissingStage):
        commit(office.broker, "q", 0, [(0, 0)])


def test_aborting_drops_what_is_staged_and_never_what_is_committed(
    office: Office,
) -> None:
    put(office, b"a")
    assert abort(office.broker, "q", 0) > 0
    with pytest.raises(MissingStage):
        commit(office.broker, "q", 0, [(0, 0)])
    put(office, b"b")
    commit(office.broker, "q", 0, [(0, 0)])

    assert abort(office.broker, "q", 0) == 0
    office.commit()

    assert stored(office) == [b"b"]


def test_an_epoch_without_events_is_noted(office: Office) -> None:
    done = commit(office.broker, "q", 0, [])
    office.commit()
    office.restart()

    assert done is not None
    assert office.broker.sinks.last("q") == done


def test_events_have_the_time_of_their_commit(office: Office) -> None:
    put(office, b"a")
    office.clock.advance(100.0)
    commit(office.broker, "q", 0, [(0, 0)])
    office.commit()

    (batch,) = office.broker.log.read("t", 0)
    assert batch.timestamps() == [office.broker.log.now_ms()]
    assert office.broker.log.offset_at("t", office.broker.log.now_ms()) == 0


def test_staged_events_of_one_topic_have_ids_of_their_own(office: Office) -> None:
    put(office, b"a", b"b")
    put(office, b"c", number=1)
    commit(office.broker, "q", 0, [(0, 0)])
    office.commit()

    (first, second) = office.broker.log.read("t", 0)
    assert (first.base_offset, second.base_offset) == (0, 2)
    assert len({*first.ids()}) == 2


def test_payloads_are_checked_when_they_are_staged(office: Office) -> None:
    office.publish("t", b"1")
    register(office, {"type": "integer"})

    with pytest.raises(InvalidPayload):
        put(office, b"1", b'"x"')

    assert office.broker.sinks.staging.bytes == 0


def test_a_schema_that_came_after_staging_counts(office: Office) -> None:
    office.publish("t", b"1")
    put(office, b'"x"', part=(0, 0))
    put(office, b"2", part=(0, 1))
    register(office, {"type": "integer"})

    with pytest.raises(InvalidPayload):
        commit(office.broker, "q", 0, [(0, 0)])
    assert commit(office.broker, "q", 0, [(0, 1)]) is not None

    office.commit()
    assert stored(office) == [b"1", b"2"]


def register(office: Office, schema: object) -> None:
    office.broker.registry.register("t", schema, type_="", at_ms=1, by="")
    office.commit()


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (InvalidName, {"query": ""}),
        (InvalidName, {"topic": ""}),
        (ReservedName, {"topic": "$errors"}),
        (InvalidOption, {"epoch": -1}),
        (InvalidOption, {"part": (-1, 0)}),
        (InvalidOption, {"part": (0, -1)}),
        (InvalidOption, {"number": -1}),
        (MissingStage, {"number": 1}),
    ],
)
def test_what_cannot_be_staged_is_refused(
    office: Office, error: type[PenstockError], wrong: dict
) -> None:
    with pytest.raises(error):
        put(office, b"a", **wrong)

    assert office.broker.sinks.staging.bytes == 0


def test_an_event_that_is_too_large_is_refused_when_it_is_staged(
    office: Office,
) -> None:
    with pytest.raises(InvalidBatch):
        put(office, bytes(office.broker.log.options.max_event_bytes + 1))


def test_a_partition_counts_once(office: Office) -> None:
    put(office, b"a", part=(0, 0))
    put(office, b"a", part=(0, 1))

    with pytest.raises(InvalidOption, match="a partition twice"):
        commit(office.broker, "q", 0, [(0, 0), (0, 1)])


def test_topics_stay_limited(tmp_path: Path) -> None:
    options = BrokerOptions(max_topics=1)
    with Broker(lambda *, owners: Log.open(tmp_path, owners=owners), options) as broker:
        for part, topic in enumerate("tu"):
            stage(broker, "q", 0, (part, 0), 0, topic, Columns([b"a"]), 0.0)

        with pytest.raises(LimitReached):
            commit(broker, "q", 0, [(0, 0), (1, 0)])

        assert broker.log.topics() == []


def test_whoever_commits_first_owns_the_query_after_a_crash_too(
    office: Office,
) -> None:
    commit(office.broker, "q", 0, [], owner="anna")
    commit(office.broker, "free", 0, [])
    office.commit()
    office.restart()

    commit(office.broker, "q", 1, [], owner="an administrator")
    commit(office.broker, "free", 1, [], owner="bert")
    office.commit()
    office.restart()

    owner = office.broker.sinks.owner
    assert (owner("q"), owner("free")) == ("anna", "bert")


def test_letters_are_charged_as_events_of_the_user(office: Office) -> None:
    broker = office.broker
    account = broker.accounts.of(Grants(user="anna", quota=Quota(events_per_s=20)))
    assert account is not None

    with broker.accounts.acting(account):
        commit(broker, "q", 0, [], raw=[letter(b"x")] * 60)
    office.commit()

    assert account.wait_s() >= 1.0


def test_letters_have_to_fit_into_what_the_user_may_store(office: Office) -> None:
    broker = office.broker
    account = broker.accounts.of(Grants(user="anna", quota=Quota(stored_bytes=1000)))

    with broker.accounts.acting(account), pytest.raises(QuotaReached):
        commit(broker, "q", 0, [], raw=[letter(bytes(1000))])

    assert broker.sinks.last("q") is None
    assert broker.log.pending_bytes == 0


def letter(raw: bytes) -> DeadLetter:
    return DeadLetter(gateway="cdc", reason="odd", at_ms=0, raw=raw)
