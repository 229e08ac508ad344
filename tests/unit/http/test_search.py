from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidArgument
from penstock.http.search import (
    MAX_CHARACTERS,
    MAX_DOCUMENT_BYTES,
    MAX_LOOKED,
    MAX_TERMS,
    parsed,
)

ORDER = {
    "type": "order",
    "paid": False,
    "total": 12.5,
    "count": 3,
    "customer": {"name": "Ann Lee", "city": "Graz", "tags": ["new", "vip"]},
    "items": [{"sku": "a-1", "price": 10}, {"sku": "b-2", "price": 2.5}],
    "note": None,
    "at": "2024-05-06T07:08:09Z",
}
PAYLOAD = json.dumps(ORDER).encode()

FOUND = [
    "",
    "graz",
    "GRAZ order",
    '"Ann Lee"',
    "customer.city=Graz",
    'customer.name="Ann Lee"',
    "customer.tags=vip",
    "items.0.price=10",
    "items.price=2.5",
    "items.1.sku=b-2",
    "total>12",
    "total>=12.5",
    "count<3.5",
    "count<=3",
    "count=3.0",
    "count!=4",
    "paid=false",
    "note=null",
    "absent!=1",
    "at>2024-05-01",
    "at<2025",
    "type=order total>10 graz",
    'at="2024-05-06T07:08:09Z"',
]
NOT_FOUND = [
    "vienna",
    "graz vienna",
    '"Lee Ann"',
    "customer.city=Wien",
    "customer.city=graz",
    "customer=Graz",
    "customer.tags=old",
    "items.2.price=1",
    "items.price>10",
    "total<12",
    "paid=true",
    "absent=1",
    "absent>1",
    "count!=3",
    "customer.city>Z",
    "type.order=1",
    "customer.city=",
]


@pytest.mark.parametrize("text", FOUND)
def test_what_is_there_is_found(text: str) -> None:
    assert parsed(text).takes(PAYLOAD)


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_is_not_there_is_not_found(text: str) -> None:
    assert not parsed(text).takes(PAYLOAD)


def test_a_payload_that_is_no_json_has_words_only() -> None:
    assert parsed("lazy dog").takes(b"the lazy brown dog \xff")
    assert not parsed("lazy=dog").takes(b"lazy=dog")


def test_what_looks_like_a_condition_is_a_word_in_quotes() -> None:
    assert parsed('"lazy=dog"').takes(b"lazy=dog")


def test_a_quoted_word_may_have_quotes() -> None:
    assert parsed(r'"say \"hi\""').takes(b'they say "hi" there')


def test_a_number_in_quotes_is_a_text() -> None:
    assert parsed('n="5"').takes(b'{"n":"5"}')
    assert parsed("n=5").takes(b'{"n":"5"}')


def test_a_value_may_be_written_with_escapes() -> None:
    assert parsed("city=Graz").takes(b'{"city":"\\u0047raz"}')
    assert parsed('city="a/b"').takes(b'{"city":"a\\/b"}')
    assert not parsed("city=Graz").takes(b'{"town":"Graz"}')


def test_a_document_that_is_too_deep_is_not_found() -> None:
    assert not parsed("a.b=1").takes(b"[" * 500 + b"]" * 500)


def test_of_a_document_with_too_many_values_the_first_are_looked_at() -> None:
    near = [{"a": 0}] * 10 + [{"a": 1}]
    far = [0] * MAX_LOOKED + [{"a": 1}]
    between = [0] * (MAX_LOOKED // 3) + [{"a": 1}]

    assert parsed("a=1").takes(msgspec.json.encode(near))
    assert not parsed("a=1").takes(msgspec.json.encode(far))
    assert parsed("a=1").takes(msgspec.json.encode(between))
    assert not parsed("a=1 a>0").takes(msgspec.json.encode(between))
    assert parsed("a.3=1").takes(msgspec.json.encode({"a": [0, 0, 0, 1]}))
    assert parsed("a=1").takes(b"[" * 300 + b'{"a":[0,1]}' + b"]" * 300)


@pytest.mark.parametrize("search", ["a=1", "a>0", "a!=2", "1 a=1"])
def test_a_large_payload_has_words_only(search: str) -> None:
    fits = b'{"a":1}'.ljust(MAX_DOCUMENT_BYTES)

    assert parsed(search).takes(fits)
    assert not parsed(search).takes(fits + b" ")
    assert parsed('"a"').takes(fits + b" ")


@pytest.mark.parametrize("text", ["x" * (MAX_CHARACTERS + 1), "x " * (MAX_TERMS + 1)])
def test_what_nobody_types_is_refused_with_the_limit(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"1000|16"):
        parsed(text)


@given(st.text(max_size=200), st.binary(max_size=100))
def test_any_text_is_a_search_and_any_bytes_can_be_searched(
    text: str, payload: bytes
) -> None:
    try:
        search = parsed(text)
    except InvalidArgument:
        return
    assert search.takes(payload) in (True, False)


@given(st.text('abc =<>.1"', max_size=30))
def test_an_awkward_search_never_fails(text: str) -> None:
    assert parsed(text).takes(PAYLOAD) in (True, False)
