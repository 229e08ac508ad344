"""A checkpoint of the queries that there were is not gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import OldCheckpoint
from penstock.pipeline.checkpoint import EARLIER, QUERY, check


@pytest.mark.parametrize(
    "begun", [(), (QUERY,), (QUERY, *EARLIER), (QUERY, "tweets"), ("another",)]
)
def test_a_checkpoint_of_its_own_is_gone_on_with(
    begun: tuple[str, ...], tmp_path: Path
) -> None:
    begin(tmp_path, *begun)

    check(str(tmp_path))


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize("begun", [EARLIER, *((one,) for one in EARLIER)])
def test_a_checkpoint_of_earlier_queries_is_refused(
    begun: tuple[str, ...], form: str, tmp_path: Path
) -> None:
    begin(tmp_path, *begun)
    directory = form.format(tmp_path)

    with pytest.raises(OldCheckpoint) as caught:
        check(directory)

    assert (caught.value.directory, caught.value.queries) == (directory, begun)


def test_where_nothing_has_begun_it_begins(tmp_path: Path) -> None:
    for name in EARLIER:
        (tmp_path / name).mkdir()  # a query that was killed before it had an id

    check(str(tmp_path))
    check(str(tmp_path / "nothing"))
    check("hdfs://host:9000/check")


def begin(directory: Path, *names: str) -> None:
    """As Spark does when a query begins."""
    for name in names:
        (directory / name).mkdir()
        (directory / name / "metadata").write_text('{"id":"7"}')
