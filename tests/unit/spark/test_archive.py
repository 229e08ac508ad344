from __future__ import annotations

import fcntl
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.spark import archive, rehearsal

Homes = tuple[Path, Path]


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homes:
    """Those of a Java and a Spark; the cache is beside them."""
    java, spark = tmp_path / "java", tmp_path / "spark"
    (java / "lib" / "server").mkdir(parents=True)
    (java / "bin").mkdir()
    a_program(java, "exit 0")
    (java / "release").write_text('JAVA_VERSION="17.0.15"\n')
    (java / "lib" / "server" / "libjvm.so").write_bytes(b"jvm")
    (java / "lib" / "server" / "classes.jsa").write_bytes(b"base")
    (spark / "jars").mkdir(parents=True)
    (spark / "jars" / "spark-core.jar").write_bytes(b"jar")
    (tmp_path / "cache dir" / "penstock").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache dir"))
    return java, spark


def a_program(java: Path, text: str) -> None:
    binary = java / "bin" / "java"
    binary.write_text(f"#!/bin/sh\n{text}\n")
    binary.chmod(0o755)


def put(homes: Homes, content: bytes = b"classes") -> Path:
    """An archive, as it is when it was made."""
    kept = archive.place(*homes)
    kept.mkdir()
    (kept / "spark.jsa").write_bytes(content)
    (kept / "sizes").write_text(f"spark.jsa {len(content)}\n")
    return kept


def a_rehearsal(monkeypatch: pytest.MonkeyPatch, *, dumps: bool) -> list[str]:
    """What Java would be told; in its place a file is written, or none is."""
    told: list[str] = []

    def rehearse(options: str, within_s: float) -> str:
        told.append(options)
        for option in shlex.split(options):
            name, _, file = option.partition("=")
            if dumps and name == "-XX:ArchiveClassesAtExit":
                Path(file).write_bytes(b"dumped")
        return "a.jar:b.jar"

    monkeypatch.setattr(rehearsal, "rehearse", rehearse)
    return told


def another_java(java: Path, spark: Path) -> None:
    (java / "release").write_text('JAVA_VERSION="17.0.16"\n')


def a_rebuilt_java(java: Path, spark: Path) -> None:
    os.utime(java / "lib" / "server" / "libjvm.so", ns=(1, 1))


def another_jar(java: Path, spark: Path) -> None:
    (spark / "jars" / "more.jar").write_bytes(b"jar")


def a_changed_jar(java: Path, spark: Path) -> None:
    (spark / "jars" / "spark-core.jar").write_bytes(b"another jar")


@pytest.mark.parametrize(
    "change", [another_java, a_rebuilt_java, another_jar, a_changed_jar]
)
def test_another_java_or_spark_is_another_archive(
    homes: Homes, change: Callable[[Path, Path], None]
) -> None:
    before = archive.place(*homes)

    change(*homes)

    assert archive.place(*homes) != before


def test_the_same_java_and_spark_are_the_same_archive(homes: Homes) -> None:
    assert archive.place(*homes) == archive.place(*homes)


def test_java_is_told_of_an_archive_that_is_there(homes: Homes) -> None:
    kept = put(homes)

    first, *others = shlex.split(archive.java_options(*homes))

    assert first == f"-XX:SharedArchiveFile={kept / 'spark.jsa'}"
    assert "-XX:+VerifySharedSpaces" in others
    assert "-Xlog:disable" in others  # Java would warn where results are


def test_without_an_archive_java_is_told_nothing(homes: Homes) -> None:
    assert archive.java_options(*homes) == ""


@pytest.mark.parametrize("left", [b"", b"class", b"classes and more"])
def test_one_of_another_size_is_not_used(homes: Homes, left: bytes) -> None:
    (put(homes) / "spark.jsa").write_bytes(left)

    assert archive.java_options(*homes) == ""


@pytest.mark.parametrize("note", ["", "spark.jsa", "spark.jsa many", "gone.jsa 7"])
def test_one_whose_note_is_damaged_is_not_used(homes: Homes, note: str) -> None:
    (put(homes) / "sizes").write_text(note)

    assert archive.java_options(*homes) == ""


def test_a_spark_without_jars_has_none(homes: Homes, tmp_path: Path) -> None:
    assert archive.java_options(homes[0], tmp_path / "nowhere") == ""
    assert archive.make_soon(homes[0], tmp_path / "nowhere") is None


def test_it_is_made_whole(homes: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    a_rehearsal(monkeypatch, dumps=True)

    made = archive.make(*homes)

    assert made == archive.place(*homes)
    assert (made / "spark.jsa").read_bytes() == b"dumped"
    assert "spark.jsa" in archive.java_options(*homes)
    assert {one.suffix for one in made.parent.iterdir()} == {"", ".lock"}


def test_a_java_without_a_base_gets_one_that_stays_where_it_was(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = a_rehearsal(monkeypatch, dumps=True)
    java, _ = homes
    (java / "lib" / "server" / "classes.jsa").unlink()
    dump = 'echo base > "${2#-XX:SharedArchiveFile=}"'
    a_program(java, f'if [ "$1" = -Xshare:dump ]; then {dump}; fi')

    made = archive.make(*homes)

    assert made is not None
    base = Path(shlex.split(told[0])[0].partition("=")[2])
    assert base.read_text() == "base\n"
    first = shlex.split(archive.java_options(*homes))[0]
    assert first == f"-XX:SharedArchiveFile={base}:{made / 'spark.jsa'}"
    base.unlink()
    assert archive.java_options(*homes) == ""


def test_a_damaged_one_is_made_again(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_rehearsal(monkeypatch, dumps=True)
    kept = put(homes)
    (kept / "spark.jsa").write_bytes(b"cut")

    archive.make(*homes)

    assert (kept / "spark.jsa").read_bytes() == b"dumped"


def test_one_that_is_there_is_not_made_again(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = a_rehearsal(monkeypatch, dumps=True)
    kept = put(homes)

    assert archive.make(*homes) == kept
    assert archive.make_soon(*homes) is None
    assert told == []


def test_what_failed_leaves_nothing_and_is_not_tried_again_at_once(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = a_rehearsal(monkeypatch, dumps=False)

    assert [archive.make(*homes) for _ in range(2)] == [None, None]

    assert len(told) == 1
    assert archive.make_soon(*homes) is None
    assert not archive.place(*homes).exists()


def test_one_that_java_refuses_is_not_kept(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_rehearsal(monkeypatch, dumps=True)
    refuse = 'case "$*" in "-Xshare:on "*"-cp a.jar:b.jar -version") exit 1;; esac'
    a_program(homes[0], refuse)

    assert archive.make(*homes) is None

    assert archive.java_options(*homes) == ""
    assert not archive.place(*homes).exists()


def test_a_week_later_it_is_tried_again(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = a_rehearsal(monkeypatch, dumps=False)
    archive.make(*homes)
    tried = archive.place(*homes).with_suffix(".tried")
    long_ago = time.time() - archive.AGAIN_S - 1
    os.utime(tried, (long_ago, long_ago))

    archive.make(*homes)

    assert len(told) == 2


def test_only_one_makes_it(homes: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    told = a_rehearsal(monkeypatch, dumps=True)
    with archive.place(*homes).with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert archive.make(*homes) is None

    assert told == []


def test_archives_that_nobody_used_for_long_are_removed(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_rehearsal(monkeypatch, dumps=True)
    cache = archive.place(*homes).parent
    long_ago = time.time() - archive.UNUSED_S - 1
    for name in ("classes-old", "classes-used", "java-old"):
        (cache / name).mkdir()
    for name in ("classes-old", "java-old"):
        os.utime(cache / name, (long_ago, long_ago))

    archive.make(*homes)

    assert {one.name for one in cache.iterdir()} >= {"classes-used", "java-old"}
    assert not (cache / "classes-old").exists()


def test_using_one_keeps_it(homes: Homes) -> None:
    kept = put(homes)
    os.utime(kept, (0, 0))

    archive.java_options(*homes)

    assert time.time() - kept.stat().st_mtime < archive.UNUSED_S


def test_a_file_in_the_cache_keeps_it_from_being_made(homes: Homes) -> None:
    (archive.place(*homes).parent / archive.OFF).touch()

    assert archive.make_soon(*homes) is None


def test_a_full_disk_is_left_alone(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "NEEDED_BYTES", 1 << 60)

    assert archive.make_soon(*homes) is None


def test_a_cache_that_cannot_be_is_left_alone(
    homes: Homes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert archive.make_soon(*homes) is None
    assert archive.java_options(*homes) == ""
