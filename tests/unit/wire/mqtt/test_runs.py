from __future__ import annotations

import random

import pytest

from penstock.wire.mqtt import render_publishes
from penstock.wire.mqtt.runs import alike, publish_run, two_bytes

COUNTS = [0, 1, 7, 8, 9, 31, 32, 33, 40, 300, 1000]


def plain_alike(
    data: bytes, at: int, stride: int, head: bytes, zeros: list[int]
) -> int:
    """What ``alike`` says, found by looking at each."""
    count = 0
    while at + stride <= len(data):
        if not data.startswith(head, at) or any(data[at + i] for i in zeros):
            break
        at += stride
        count += 1
    return count


@pytest.mark.parametrize("length", [2, 5])
@pytest.mark.parametrize("good", COUNTS)
def test_packets_are_alike_up_to_the_first_that_is_not(length: int, good: int) -> None:
    head = bytes(range(1, length + 1))
    packet = head + b"id\0payload"
    zeros = [length + 2]
    for changed in range(length + 3):
        if changed in (length, length + 1):
            continue
        other = bytearray(packet)
        other[changed] ^= 0x40
        data = b"##" + packet * good + other + packet * 50

        assert alike(data, 2, len(packet), head, zeros) == good
        assert plain_alike(data, 2, len(packet), head, zeros) == good


@pytest.mark.parametrize("good", COUNTS)
def test_a_packet_that_is_cut_off_is_not_counted(good: int) -> None:
    packet = b"\x30\x04\x00\x01tx"

    for cut in range(len(packet)):
        data = packet * good + packet[:cut]
        assert alike(data, 0, len(packet), packet[:5]) == good


@pytest.mark.parametrize("seed", range(20))
def test_columns_and_single_looks_say_the_same(seed: int) -> None:
    rng = random.Random(seed)
    data = bytes(rng.choices(b"\0\1", weights=(1, 60), k=5000))
    for _ in range(50):
        at, stride = rng.randrange(100), rng.randrange(3, 20)
        head = data[at : at + rng.randrange(1, 3)]

        expected = plain_alike(data, at, stride, head, [2])

        assert alike(data, at, stride, head, [2]) == expected, f"seed {seed}"


@pytest.mark.parametrize("count", COUNTS)
def test_numbers_stand_a_stride_apart(count: int) -> None:
    numbers = [i * 61 % 65536 for i in range(count)]
    data = b"#" + b"".join(b"%b-%05d" % (n.to_bytes(2, "big"), n) for n in numbers)

    assert two_bytes(data, 1, 8, count) == numbers


def test_a_run_is_empty_if_its_first_packet_is_not_plain() -> None:
    with_properties = b"\x30\x07\x00\x01t\x02\x01\x00x"
    without_id = b"\x32\x06\x00\x01t\x00\x00x"

    for data, version in ((with_properties, 5), (without_id, 4)):
        run = publish_run(data, 0, 2, len(data), b"\x00\x01t", 100, version)
        assert run == ([], [], 0)


def test_a_run_says_where_it_ends() -> None:
    data = render_publishes(b"t", [b"1", b"22", b"3"], qos=1, packet_ids=[1, 2, 3])
    rest = b"\x32\x05\x00\x01u\x00\x01"

    run = publish_run(data + rest, 0, 2, 8, b"\x00\x01t", 100, 4)

    assert run == ([b"1", b"22", b"3"], [1, 2, 3], len(data))


def test_a_run_with_long_and_longer_lengths_goes_on() -> None:
    payloads = [b"x" * n for n in (1, 123, 124, 125, 200, 16_000, 16_378, 5)]
    data = render_publishes(b"t", payloads, qos=0)

    run = publish_run(data, 0, 2, 6, b"\x00\x01t", 1 << 20, 4)

    assert run == (payloads, [], len(data))


@pytest.mark.parametrize("good", [0, 2, 3, 10, 11, 12, 75, 76, 77, 200])
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("version", [4, 5])
def test_a_run_ends_in_front_of_any_byte_that_is_wrong(
    good: int, qos: int, version: int
) -> None:
    none = b"\0" if version == 5 else None
    ids = [*range(1, 302)] if qos else None
    stream = render_publishes(
        b"t/u",
        [b"%04d" % i for i in range(301)],
        qos=qos,
        packet_ids=ids,
        properties=none,
    )
    stride = len(stream) // 301
    field = b"\x00\x03t/u"
    places = [0, *range(2, 7)]
    if version == 5:
        places.append(7 + 2 * qos)
    for place in places:
        data = bytearray(stream)
        data[good * stride + stride + place] ^= 0x04
        run = publish_run(bytes(data), 0, 2, stride, field, 100, version)
        assert (len(run[0]), run[2]) == (good + 1, (good + 1) * stride)
    if qos:
        data = bytearray(stream)
        data[good * stride + stride + 7 : good * stride + stride + 9] = b"\0\0"
        run = publish_run(bytes(data), 0, 2, stride, field, 100, version)
        assert run[1] == [*range(1, good + 2)]


def test_payloads_may_look_like_packets() -> None:
    inner = b"\x30\x05\x00\x01txx"
    payloads = [inner * (i % 3) for i in range(100)] + [inner] * 100
    data = render_publishes(b"t", payloads, qos=0)

    run = publish_run(data, 0, 2, 5, b"\x00\x01t", 1000, 4)

    assert run == (payloads, [], len(data))
