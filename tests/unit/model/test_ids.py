from __future__ import annotations

import os
import uuid

import pytest

from penstock.model import ids

RANDOM = bytes(range(1, 11))
MILLIS = 0x0123456789AB


def id_base(timestamp_ms: int, random: bytes) -> bytes:
    return ids.id_base(timestamp_ms, ids.low_id(random))


@pytest.mark.parametrize("random", [bytes(10), b"\xff" * 10, RANDOM])
def test_base_is_a_uuid_of_version_7(random: bytes) -> None:
    found = uuid.UUID(bytes=id_base(MILLIS, random))

    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert found.int >> 80 == MILLIS


def test_bytes_of_a_base_are_those_of_the_rfc() -> None:
    base = id_base(MILLIS, b"\xff" * 10)

    # 48 bits of time, version 7, 12 random bits, variant 10, 62 random bits of which
    # the top one is cleared, and that of the counter.
    assert base.hex() == "0123456789ab" + "7fff" + "9fffffff" + "7fffffff"


def test_all_of_the_entropy_counts() -> None:
    draws = {id_base(MILLIS, RANDOM)}
    for index in range(ids.RANDOM_BYTES):
        changed = bytearray(RANDOM)
        changed[index] ^= 0x10
        draws.add(id_base(MILLIS, bytes(changed)))

    assert len(draws) == ids.RANDOM_BYTES + 1


def test_no_byte_of_the_kernel_is_handed_out_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[bytes] = []

    def urandom(size: int) -> bytes:
        given.append(bytes([len(given)]) * size)
        return given[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    entropy = ids.Entropy()

    draws = [entropy(size) for size in (10, 4000, 100, 10_000, 10)]

    assert [len(one) for one in draws] == [10, 4000, 100, 10_000, 10]
    # The third and the fourth did not fit any more, nor the last behind all of those.
    assert [set(one) for one in draws] == [{0}, {0}, {1}, {2}, {3}]
    assert draws[0] + draws[1] == given[0][:4010]


def test_counting_stays_within_the_counter() -> None:
    base = id_base(MILLIS, b"\xff" * 10)

    last = ids.advance(base, (1 << 31) - 1)

    assert last[:12] == base[:12]
    assert uuid.UUID(bytes=last).version == 7


def test_ids_rise_with_the_offset() -> None:
    base = id_base(MILLIS, RANDOM)

    texts = [ids.event_id(base, delta) for delta in range(300)]

    assert texts == sorted(set(texts))
    assert texts[0] == str(uuid.UUID(bytes=base))


def test_base_advanced_gives_the_ids_further_on() -> None:
    base = id_base(MILLIS, RANDOM)

    assert ids.event_id(ids.advance(base, 5), 2) == ids.event_id(base, 7)


def test_time_that_does_not_fit_keeps_its_lower_bits() -> None:
    base = id_base((1 << 48) + 5, RANDOM)

    assert base == id_base(5, RANDOM)


@pytest.mark.parametrize("deltas", [range(0), range(300), [0, 3, 1 << 30]])
@pytest.mark.parametrize("base", [id_base(MILLIS, RANDOM), bytes(12) + b"\xff" * 4])
def test_many_ids_are_those_made_one_by_one(base: bytes, deltas: list[int]) -> None:
    assert ids.event_ids(base, deltas) == [ids.event_id(base, one) for one in deltas]


@pytest.mark.parametrize("base", [id_base(MILLIS, RANDOM), bytes(12) + b"\xff" * 4])
def test_ids_by_time_say_the_time_of_their_events(base: bytes) -> None:
    deltas, times = [0, 3, 4, 1 << 30], [MILLIS, -1, MILLIS, (1 << 62) + 5]

    texts = ids.event_ids_at(base, deltas, times)

    low = int.from_bytes(base, "big")
    assert [uuid.UUID(text).int for text in texts] == [
        (time % (1 << 48)) << 80 | (low + delta) % (1 << 80)
        for delta, time in zip(deltas, times, strict=True)
    ]
    one_by_one = zip(deltas, times, strict=True)
    assert texts == [ids.event_id_at(base, delta, time) for delta, time in one_by_one]


def test_ids_by_time_are_the_usual_ones_at_the_time_of_the_base() -> None:
    base = id_base(MILLIS, RANDOM)

    assert ids.event_ids_at(base, range(9), [MILLIS] * 9) == ids.event_ids(
        base, range(9)
    )
    assert ids.event_ids_at(base, [], []) == []


def test_what_an_id_counts_has_no_time_in_it() -> None:
    base = id_base(MILLIS, RANDOM)

    assert ids.counted(base, 7) == ids.counted(id_base(5, RANDOM), 0) + 7
