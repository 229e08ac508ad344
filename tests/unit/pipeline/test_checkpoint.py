"""A checkpoint of the queries that there were is not gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import OldCheckpoint
from penstock.pipeline.application import NAME
from penstock.pipeline.checkpoint import EARLIER, check


@pytest.mark.parametrize(
    "begun", [(), (NAME,), (NAME, *EARLIER), (NAME, "tweets"), ("another",)]
)
def test_a_checkpoint_of_its_own_is_gone_on_with(
    begun: tuple[str, ...], tmp_path: Path
) -> None:
    begin(tmp_path, *begun)

    check(str(tmp_path), NAME)


@pytest.mark.parametrize("begun", [EARLIER, *((one,) for one in EARLIER)])
def test_a_checkpoint_of_earlier_queries_is_refused(
    begun: tuple[str, ...], tmp_path: Path
) -> None:
    begin(tmp_path, *begun)

    with pytest.raises(OldCheckpoint) as caught:
        check(str(tmp_path), NAME)

    assert (caught.value.directory, caught.value.queries) == (str(tmp_path), begun)


def test_where_nothing_has_begun_it_begins(tmp_path: Path) -> None:
    for name in EARLIER:
        (tmp_path / name).mkdir()  # a query that was killed before it had an id

    check(str(tmp_path), NAME)
    check(str(tmp_path / "nothing"), NAME)


def begin(directory: Path, *names: str) -> None:
    """As Spark does when a query begins."""
    for name in names:
        (directory / name).mkdir()
        (directory / name / "metadata").write_text('{"id":"7"}')
