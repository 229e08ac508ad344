from __future__ import annotations

import tomllib
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.values import WrongKind, from_text, from_toml, text_of, wanted

WORD = Literal["sync", "os"]
WHOLE = "a whole number"
SIZE = "a whole number, or a size like 64KiB, 1MiB or 1GiB"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "12", 12),
        (int, "-3", -3),
        (int, "1_000", 1000),
        (int | None, "0", 0),
        (int | None, "off", None),
        (float, "2", 2.0),
        (float, "0.25", 0.25),
        (float, "1e3", 1000.0),
        (float | None, "off", None),
        (bool, "true", True),
        (bool, "Yes", True),
        (bool, "1", True),
        (bool, "off", False),
        (bool, "FALSE", False),
        (str, "off", "off"),
        (str, "", ""),
        (str | None, "off", None),
        (str | None, "./off", "./off"),
        (WORD, "os", "os"),
    ],
)
def test_text_becomes_a_value(kind: Any, text: str, value: object) -> None:
    found = from_text(kind, text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64KiB", 65536),
        ("1MiB", 1 << 20),
        ("3 GiB", 3 << 30),
        ("1TiB", 1 << 40),
        ("1mib", 1 << 20),
        ("1_024", 1024),
        ("-1KiB", -1024),
    ],
)
def test_a_size_may_have_a_unit(text: str, value: int) -> None:
    assert from_text(int, text, is_size=True) == value
    assert from_toml(int, text, is_size=True) == value


@pytest.mark.parametrize(
    ("kind", "text", "must_be"),
    [
        (int, "", WHOLE),
        (int, "1.5", WHOLE),
        (int, "1KiB", WHOLE),
        (int, "٣", WHOLE),
        (int, "1__0", WHOLE),
        (int, "9" * 5000, WHOLE),
        (int | None, "no", WHOLE + ", or 'off'"),
        (float, "", "a number"),
        (float, "inf", "a number"),
        (float, "nan", "a number"),
        (float | None, "x", "a number, or 'off'"),
        (bool, "maybe", "true or false"),
        (WORD, "Sync", "'sync' or 'os'"),
    ],
)
def test_text_of_the_wrong_kind_is_refused(kind: Any, text: str, must_be: str) -> None:
    with pytest.raises(WrongKind) as caught:
        from_text(kind, text)

    assert str(caught.value) == must_be


@pytest.mark.parametrize("text", ["1KB", "1 M", "KiB", "1.5MiB", "1KiB ", "9" * 5000])
def test_other_units_are_refused(text: str) -> None:
    with pytest.raises(WrongKind, match=SIZE):
        from_text(int, text, is_size=True)


@pytest.mark.parametrize(
    ("kind", "toml", "value"),
    [
        (int, "12", 12),
        (int | None, "'off'", None),
        (float, "2", 2.0),
        (float, "2.5", 2.5),
        (float | None, "'off'", None),
        (bool, "true", True),
        (str, "'off'", "off"),
        (str | None, "'off'", None),
        (WORD, "'os'", "os"),
    ],
)
def test_a_toml_value_becomes_a_value(kind: Any, toml: str, value: object) -> None:
    found = from_toml(kind, tomllib.loads(f"x = {toml}")["x"])

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "toml", "must_be"),
    [
        (int, "'12'", WHOLE),
        (int, "1.0", WHOLE),
        (int, "true", WHOLE),
        (int, "[1]", WHOLE),
        (int, "{}", WHOLE),
        (int | None, "false", WHOLE + ", or 'off'"),
        (float, "'2'", "a number"),
        (float, "inf", "a number"),
        (float, "nan", "a number"),
        (float, "false", "a number"),
        pytest.param(float, "9" * 400, "a number", id="beyond any float"),
        (bool, "1", "true or false"),
        (bool, "'true'", "true or false"),
        (str, "5", "text"),
        (str, "2020-01-01", "text"),
        (WORD, "'maybe'", "'sync' or 'os'"),
        (WORD, "1", "'sync' or 'os'"),
    ],
)
def test_a_toml_value_of_the_wrong_kind_is_refused(
    kind: Any, toml: str, must_be: str
) -> None:
    with pytest.raises(WrongKind) as caught:
        from_toml(kind, tomllib.loads(f"x = {toml}")["x"])

    assert str(caught.value) == must_be


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "off"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (65536, "64KiB"),
        (1 << 30, "1GiB"),
        (1500, "1500"),
        (10.0, "10"),
        (0.5, "0.5"),
        ("abc", "abc"),
    ],
)
def test_values_are_shown_as_people_write_them(value: object, text: str) -> None:
    assert text_of(value, is_size=True) == text


VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (int | None, st.none() | st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (str, st.text()),
    (WORD, st.sampled_from(["sync", "os"])),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("is_size", [False, True])
def test_what_is_shown_is_read_back(
    kind: Any, values: st.SearchStrategy[Any], *, is_size: bool
) -> None:
    is_size = is_size and kind in (int, int | None)

    @given(values)
    def check(value: object) -> None:
        text = text_of(value, is_size=is_size)
        assert from_text(kind, text, is_size=is_size) == value

    check()


@given(st.text(), st.sampled_from([kind for kind, _ in VALUES]), st.booleans())
def test_any_text_is_a_value_or_refused(text: str, kind: Any, is_size: bool) -> None:
    try:
        from_text(kind, text, is_size=is_size)
    except WrongKind as error:
        assert str(error) == wanted(kind, is_size=is_size)
