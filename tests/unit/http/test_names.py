from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRequest
from penstock.http.router import segment, segments_of

# What a topic may be called, but that NUL is in no name.
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_any_name_comes_back_from_its_segment(names: list[str]) -> None:
    path = "".join(f"/{segment(name)}" for name in names)

    assert segments_of(path.encode("ascii")) == tuple(names)


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        (b"/", ("",)),
        (b"/v1/topics/a%2Fb", ("v1", "topics", "a/b")),
        (b"/v1/topics/", ("v1", "topics", "")),
        (b"//x", ("", "x")),
        (b"/a%2fb/%2e%2e/..", ("a/b", "..", "..")),
        (b"/%252F", ("%2F",)),
        (b"/100%", ("100%",)),
        (b"/a+b", ("a+b",)),
    ],
)
def test_a_path_is_split_before_it_is_decoded(
    path: bytes, segments: tuple[str, ...]
) -> None:
    assert segments_of(path) == segments


@pytest.mark.parametrize(
    "path", [b"", b"x", b"*", b"/%ff", b"/a%00b", b"/x" * 40, b"http://h/v1"]
)
def test_what_is_no_path_is_refused(path: bytes) -> None:
    with pytest.raises(BadRequest):
        segments_of(path)
