from __future__ import annotations

import pytest

from penstock.log.layout import Layout, index_file, numbered, segment_file

LAYOUT = Layout("data")


def test_names_of_files_are_those_of_the_tree() -> None:
    relative = LAYOUT.relative

    assert relative(LAYOUT.lock) == "lock"
    assert relative(LAYOUT.position) == "position"
    assert relative(LAYOUT.quarantine) == "quarantine"
    assert relative(LAYOUT.journal_file(7)) == "journal/00000000000000000007.jnl"
    assert relative(LAYOUT.checkpoint_file(7)) == "checkpoints/00000000000000000007.ckp"
    assert segment_file("t-1", 7) == "t-1/00000000000000000007.seg"
    assert index_file("t-1", 7) == "t-1/00000000000000000007.idx"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("orders", "orders-3"),
        ("Orders/EU west", "orders-eu-west-3"),
        ("../../etc/passwd", "etc-passwd-3"),
        ("日本", "-3"),
        ("x" * 1000, "x" * 40 + "-3"),
        (".", "-3"),
        ("a_b", "a_b-3"),
    ],
)
def test_folder_of_a_topic_is_safe_and_readable(name: str, folder: str) -> None:
    assert LAYOUT.relative(LAYOUT.topic_directory(name, 3)) == f"topics/{folder}"


def test_numbers_are_read_from_names_of_the_form_only() -> None:
    names = [
        "00000000000000000010.seg",
        "00000000000000000002.seg",
        "00000000000000000003.seg.tmp",
        "00000000000000000004.idx",
        "0000000000000000005.seg",
        "0000000000000000000x.seg",
        "notes",
    ]

    assert numbered(names, ".seg") == [2, 10]


def test_largest_position_still_has_a_name_that_sorts() -> None:
    largest = (1 << 64) - 1

    name = LAYOUT.relative(LAYOUT.journal_file(largest)).removeprefix("journal/")

    assert numbered([name], ".jnl") == [largest]
