"""Spark's classes as Java wants them in memory, kept in a file: it starts sooner.

Reading, checking and linking twenty thousand classes is half of what a short query
costs. Java can keep the result (AppCDS) and map it the next time. The file is

- tied to one Java, one Spark and their places: the name says which, by a hash;
- made by a process of its own, at the lowest priority and without a terminal,
  which runs a little of everything, asks Java whether it takes the file, and then
  moves the whole directory to its place. Not every Java does: one of version 21 was
  seen to refuse a class path that names a jar twice, as Spark's does;
- never trusted. Its size has to be the one that was noted: Java dies of a file that was
  cut, so that one is not used, but made again. Java checks header, jars and sums;
  if anything is wrong it does without the file, and says nothing of that.

``python -m penstock.spark.archive`` makes it at once, for an image for instance.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.spark import cache
from penstock.spark.java import true_home

# A file of this name in the cache keeps it from being made unless it is asked for.
OFF = "classes.off"
# What it may take, twice over; on a disk with less than that nothing is made.
NEEDED_BYTES = 1 << 30
# Not again before that, if it could not be made: a minute of work for nothing.
AGAIN_S = 7 * 24 * 3600.0
# Archives of other versions that were not used for so long are removed.
UNUSED_S = 30 * 24 * 3600.0
# A Java that has not ended by then does not end.
DUMP_S = 600.0
NICE = 19

# Java warns on standard output, where results are.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr -Xlog:cds*=off"
_NAME = "classes"
_FILE = "spark.jsa"
_BASE = "java.jsa"
_SIZES = "sizes"
# Enough to make Java look at the archive.
_ASK = "-version"
_LIBRARY = Path("lib", "server", "libjvm.so")


def place(java: Path, spark: Path) -> Path:
    """The directory for this Java and this Spark, whether it is there or not."""
    return cache.place(cache.directory(), _NAME, key(true_home(java), spark))


def key(java: Path, spark: Path) -> str:
    """All that an archive depends on."""
    jars = sorted((spark / "jars").iterdir())
    parts = [
        str(java),
        _release(java),
        *(_seen(one) for one in (java / _LIBRARY, *jars)),
    ]
    return "\n".join(parts)


def java_options(java: Path, spark: Path) -> str:
    """What lets Java use the archive; nothing if there is none."""
    try:
        kept = place(java, spark)
    except OSError:
        return ""
    files = intact(kept)
    if not files:
        return ""
    for file in files:
        _touch(file.parent)
    return f"{_quoted(_shared(files))} -XX:+VerifySharedSpaces {_QUIET}"


def intact(kept: Path) -> list[Path]:
    """The files of an archive, the base first; none unless all have their sizes."""
    try:
        lines = (kept / _SIZES).read_text().splitlines()
        noted = [line.rsplit(maxsplit=1) for line in lines]
        sizes = {kept / name: int(size) for name, size in noted}
        whole = all(file.stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError):
        return []
    return list(sizes) if whole else []


def make_soon(java: Path, spark: Path) -> subprocess.Popen[bytes] | None:
    """Have it made if it is missing, by a process that the caller need not wait for."""
    try:
        target = place(java, spark)
        if (target.parent / OFF).exists() or not _wanted(target):
            return None
        return subprocess.Popen(
            [sys.executable, "-m", __name__, "--later"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError:  # a cache that cannot be written: as slow as before
        return None


def make(java: Path, spark: Path) -> Path | None:
    """The archive, made if need be; None if another process is at it, or it failed."""
    target = place(java, spark)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target) as alone:
        if not alone or not _wanted(target):
            return target if intact(target) else None
        shutil.rmtree(target, ignore_errors=True)  # it is damaged, if it is there
        tried = _tried(target)
        tried.touch()  # one that was killed half-way is not tried again at once, either
        try:
            of = key(true_home(java), spark)
            made = cache.made(target.parent, _NAME, of, lambda to: _fill(to, java))
        except (OSError, subprocess.SubprocessError):
            return None
        tried.unlink(missing_ok=True)
        _remove_unused(target)
        return made


def _fill(fresh: Path, java: Path) -> None:
    from penstock.spark.rehearsal import rehearse

    bases: list[Path] = []
    if not (true_home(java) / "lib" / "server" / "classes.jsa").is_file():
        bases = [_base(fresh.parent, java)]  # a runtime that was cut to size has none
    base = _quoted(_shared(bases)) if bases else ""
    file = _quoted(f"-XX:ArchiveClassesAtExit={fresh / _FILE}")
    class_path = rehearse(f"{base} {file} {_QUIET}", DUMP_S)
    _run(java, "-Xshare:on", _shared([*bases, fresh / _FILE]), "-cp", class_path, _ASK)
    sizes = [f"{file} {file.stat().st_size}\n" for file in bases]
    sizes.append(f"{_FILE} {(fresh / _FILE).stat().st_size}\n")
    (fresh / _SIZES).write_text("".join(sizes))


def _base(kept_in: Path, java: Path) -> Path:
    """Java's own classes. In its place before it is used: archives note where it is."""

    def fill(fresh: Path) -> None:
        _run(java, "-Xshare:dump", _shared([fresh / _BASE]))

    home = true_home(java)
    of = "\n".join([str(home), _release(home), _seen(home / _LIBRARY)])
    return cache.made(kept_in, _NAME, of, fill) / _BASE


def _run(java: Path, *arguments: str) -> None:
    """Raises SubprocessError if Java is not content."""
    command = [str(java / "bin" / "java"), *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=DUMP_S)


def _release(java: Path) -> str:
    file = java / "release"
    return file.read_text(errors="replace") if file.is_file() else ""


def _wanted(target: Path) -> bool:
    """Is it missing, was it not tried a moment ago, and is there room for it?"""
    if intact(target):
        return False
    with suppress(FileNotFoundError):
        if time.time() - _tried(target).stat().st_mtime < AGAIN_S:
            return False
    if not os.access(target.parent, os.W_OK):
        return False
    return shutil.disk_usage(target.parent).free >= NEEDED_BYTES


@contextmanager
def _alone(target: Path) -> Iterator[bool]:
    """Is no other process making it?"""
    with target.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _tried(target: Path) -> Path:
    return target.with_suffix(".tried")


def _touch(kept: Path) -> None:
    with suppress(OSError):  # not ours, but good enough
        os.utime(kept)


def _remove_unused(used: Path) -> None:
    for other in used.parent.glob(f"{_NAME}-*"):
        with suppress(OSError):
            if other != used and time.time() - other.stat().st_mtime > UNUSED_S:
                shutil.rmtree(other) if other.is_dir() else other.unlink()


def _seen(file: Path) -> str:
    try:
        stat = file.stat()
    except FileNotFoundError:
        return f"{file} is not there"
    return f"{file} {stat.st_size} {stat.st_mtime_ns}"


def _shared(files: list[Path]) -> str:
    return f"-XX:SharedArchiveFile={':'.join(map(str, files))}"


def _quoted(option: str) -> str:
    """As Spark splits its options."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def main() -> int:
    """Make the archive of the session that this Python would start."""
    from penstock.spark.sessions import homes

    if "--later" in sys.argv:
        os.nice(NICE)
    made = make(*homes())
    if made is None:
        sys.stderr.write("no archive was made\n")
    return 0 if made is not None else 1


if __name__ == "__main__":
    sys.exit(main())
