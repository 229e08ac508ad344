from __future__ import annotations

import pytest

from penstock.chains.keys import batch_key, text_key, uuid_value
from penstock.model import ids

NOW_MS = 1_700_000_000_000
BASE = ids.id_base(NOW_MS, ids.low_id(bytes(range(10))))


def test_all_ids_of_a_batch_share_its_key() -> None:
    first = batch_key(int.from_bytes(BASE, "big"))

    for delta in (1, 1000, 2**31):
        value = uuid_value(ids.event_id(BASE, delta))
        assert value is not None
        assert batch_key(value) == first


def test_later_ids_have_larger_keys() -> None:
    later = ids.id_base(NOW_MS + 1, ids.low_id(bytes(10)))

    assert text_key(ids.event_id(BASE, 5)) < text_key(ids.event_id(later, 0))


def test_neighbours_of_a_batch_have_keys_of_their_own() -> None:
    keys = {text_key(ids.event_id(BASE, delta)) for delta in range(1000)}

    assert len(keys) == 1000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "order-1",
        "é" * 300,
        ids.event_id(BASE, 0).replace("-7", "-4", 1),
        "0190b3c4-1d2e-7abc-8def-00000000000g",
        "x" * 14 + "7" + "x" * 21,
    ],
)
def test_any_other_text_has_a_hash_below_zero(text: str) -> None:
    assert uuid_value(text) is None
    assert -(1 << 63) <= text_key(text) < 0
    assert text_key(text) == text_key(str(text))


@pytest.mark.parametrize("text", ["-" * 14 + "7" + "f" * 21, "f" * 14 + "7" + "f" * 21])
def test_what_only_looks_like_one_fits_into_a_row(text: str) -> None:
    value = uuid_value(text)

    assert value is not None
    assert 0 <= text_key(text) < 1 << 63
    assert 0 <= batch_key(value) < 1 << 63


def test_numbered_ids_stand_together() -> None:
    keys = [text_key(f"order-{number}") for number in range(1000)]

    assert keys == list(range(keys[0], keys[0] - 1000, -1))
    assert abs(text_key("payment-0") - keys[0]) > 1000


def test_many_digits_and_zeros_make_no_difference_in_kind() -> None:
    texts = ["7", "07", "1" * 40, "1" * 39 + "2", "9" * 9, "9" * 10, "x" * 256]

    keys = {text_key(text) for text in texts}

    assert len(keys) == len(texts) - 1  # 7 and 07 share one, and are told apart later
