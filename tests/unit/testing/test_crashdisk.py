from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from random import Random

import pytest

from penstock.files import read_file, replace_file
from penstock.testing import CrashDisk, PowerCut

SEEDS = range(300)
FOLDER = "/data"
FILE = "/data/file"
Change = Callable[[CrashDisk, int], object]


@pytest.fixture
def disk() -> CrashDisk:
    """A folder with one file, both there for good."""
    return with_file()


def with_file(
    content: bytes = b"old!",
    *,
    honours_sync: bool = True,
    honours_directory_sync: bool = True,
) -> CrashDisk:
    disk = CrashDisk(
        honours_sync=honours_sync, honours_directory_sync=honours_directory_sync
    )
    disk.make_directory(FOLDER)
    disk.sync_directory("/")
    handle = disk.open(FILE, write=True, create=True)
    disk.write(handle, [content], 0)
    disk.sync(handle)
    disk.close(handle)
    disk.sync_directory(FOLDER)
    return disk


def crashes(disk: CrashDisk) -> Iterator[tuple[int, CrashDisk]]:
    """The disk after many a power cut, each with its seed."""
    for seed in SEEDS:
        yield seed, disk.crashed(Random(seed))


def contents(disk: CrashDisk, path: str = FILE) -> set[bytes | None]:
    """All that a file may hold after a power cut; None: it is not there."""
    return {
        read_file(one, path) if one.exists(path) else None for _, one in crashes(disk)
    }


def change(disk: CrashDisk, *steps: Change, path: str = FILE) -> None:
    handle = disk.open(path, write=True)
    for step in steps:
        step(disk, handle)
    disk.close(handle)


def write(data: bytes, position: int = 0) -> Change:
    return lambda disk, handle: disk.write(handle, [data], position)


def cut(length: int) -> Change:
    return lambda disk, handle: disk.truncate(handle, length)


def sync(disk: CrashDisk, handle: int) -> None:
    disk.sync(handle)


# Without an accident


def test_file_holds_what_was_written_whether_it_was_synced_or_not(
    disk: CrashDisk,
) -> None:
    handle = disk.open(FILE, write=True)

    assert disk.write(handle, [b"n", bytearray(b"e"), memoryview(b"w")], 6) == 3
    assert disk.size(handle) == 9
    assert disk.read(handle, 100, 0) == b"old!\0\0new"
    assert disk.read(handle, 2, 1) == b"ld"
    assert disk.read(handle, 5, 9) == b""


def test_folders_list_what_is_directly_in_them_and_go_with_all_of_it(
    disk: CrashDisk,
) -> None:
    disk.make_directory("/data/a/b")
    disk.make_directory("/data/a")

    assert disk.list(FOLDER) == ["a", "file"]
    assert disk.list("/data/a") == ["b"]
    assert disk.paths() == [FILE]
    assert disk.exists("/")
    disk.remove_tree("/data/a")
    assert disk.list(FOLDER) == ["file"]


@pytest.mark.parametrize("call", [CrashDisk.open, CrashDisk.list, CrashDisk.remove])
def test_what_is_not_there_is_not_found(
    disk: CrashDisk, call: Callable[[CrashDisk, str], object]
) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        call(disk, "/data/none")


# Content after a power cut


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ([], b"old!"),
        ([write(b"newer"), sync], b"newer"),
        ([write(b"xx", 6), sync], b"old!\0\0xx"),
        ([cut(1), sync], b"o"),
        ([cut(6), sync], b"old!\0\0"),
        ([cut(1), write(b"n", 1), sync], b"on"),
    ],
)
def test_what_was_synced_survives_every_power_cut(
    disk: CrashDisk, steps: list[Change], left: bytes
) -> None:
    change(disk, *steps)

    assert contents(disk) == {left}


def test_unsynced_write_may_be_lost_or_kept_or_torn(disk: CrashDisk) -> None:
    change(disk, write(b"new!"))

    found = contents(disk)

    assert {b"old!", b"new!", b"ned!", b"olw!"} <= found
    for content in found:
        assert content is not None
        pairs = zip(content, b"old!", b"new!", strict=True)
        assert all(byte in (old, new) for byte, old, new in pairs), content


def test_file_that_grew_unsynced_may_end_in_zeros_or_junk(disk: CrashDisk) -> None:
    change(disk, write(b"x" * 8, 4))

    found = [content for content in contents(disk) if content is not None]

    assert all(content.startswith(b"old!") for content in found)
    assert b"old!" in found
    assert b"old!" + b"x" * 8 in found
    assert b"old!" + bytes(8) in found
    assert any(len(content) < 12 and content.endswith(b"x") for content in found)
    assert any(set(content[4:]) - {0, ord("x")} for content in found)


def test_unsynced_cut_may_be_undone(disk: CrashDisk) -> None:
    change(disk, cut(1))

    assert contents(disk) == {b"o", b"old!"}


def test_later_unsynced_write_may_survive_an_earlier_one(disk: CrashDisk) -> None:
    change(disk, write(b"A", 0), write(b"B", 3))

    assert {b"old!", b"Ald!", b"oldB", b"AldB"} == contents(disk)


def test_sync_covers_only_its_own_file(disk: CrashDisk) -> None:
    replace_file(disk, "/data/other", b"other")

    change(disk, write(b"new!"))
    change(disk, write(b"synced"), sync, path="/data/other")

    assert b"old!" in contents(disk)
    assert contents(disk, "/data/other") == {b"synced"}


def test_what_a_power_cut_left_is_there_for_good(disk: CrashDisk) -> None:
    change(disk, write(b"new!"))
    disk.open("/data/more", create=True)

    for seed, survivor in crashes(disk):
        left = read_file(survivor, FILE)
        paths = survivor.paths()
        again = survivor.crashed(Random(seed + 1))

        assert read_file(again, FILE) == left, f"seed {seed}"
        assert again.paths() == paths, f"seed {seed}"


def test_same_seed_gives_the_same_disk(disk: CrashDisk) -> None:
    change(disk, write(b"x" * 100, 4))

    first = [read_file(one, FILE) for _, one in crashes(disk)]

    assert first == [read_file(one, FILE) for _, one in crashes(disk)]


# Names after a power cut


def test_new_name_may_be_lost_although_its_file_was_synced(disk: CrashDisk) -> None:
    disk.open("/data/new", create=True)
    change(disk, write(b"new"), sync, path="/data/new")

    assert contents(disk, "/data/new") == {None, b"new"}

    disk.sync_directory(FOLDER)

    assert contents(disk, "/data/new") == {b"new"}


def test_removed_name_may_come_back_until_its_folder_is_synced(
    disk: CrashDisk,
) -> None:
    disk.remove(FILE)

    assert contents(disk) == {None, b"old!"}

    disk.sync_directory(FOLDER)

    assert contents(disk) == {None}


def test_renaming_is_atomic_and_needs_a_sync_of_the_folder(disk: CrashDisk) -> None:
    disk.open("/data/new", create=True)
    change(disk, write(b"new"), sync, path="/data/new")
    disk.sync_directory(FOLDER)

    disk.rename("/data/new", FILE)

    found = {(tuple(one.paths()), read_file(one, FILE)) for _, one in crashes(disk)}
    assert found == {
        ((FILE, "/data/new"), b"old!"),
        ((FILE,), b"new"),
    }
    disk.sync_directory(FOLDER)
    assert contents(disk) == {b"new"}


def test_sync_of_another_folder_is_no_sync_of_this_one(disk: CrashDisk) -> None:
    disk.make_directory("/other")
    disk.remove(FILE)

    disk.sync_directory("/other")
    disk.sync_directory("/")

    assert contents(disk) == {None, b"old!"}


def test_file_is_lost_with_a_folder_that_was_not_synced() -> None:
    disk = CrashDisk()
    disk.make_directory(FOLDER)
    disk.open(FILE, create=True)
    disk.sync_directory(FOLDER)

    found = {tuple(one.paths()) for _, one in crashes(disk)}

    assert found == {(), (FILE,)}
    assert all(one.exists(FOLDER) for _, one in crashes(disk) if one.paths())


def test_replaced_file_is_old_or_new_at_every_call_and_new_for_good(
    disk: CrashDisk,
) -> None:
    calls = disk.calls
    replace_file(disk, FILE, b"new!")
    steps = disk.calls - calls

    for step in range(1, steps + 1):
        disk = with_file()
        disk.cut_power_in(step)
        with pytest.raises(PowerCut):
            replace_file(disk, FILE, b"new!")
        assert contents(disk) <= {b"old!", b"new!"}, step

    assert steps > 3
    disk = with_file()
    replace_file(disk, FILE, b"new!")
    assert contents(disk) == {b"new!"}


# Accidents to order


def test_power_goes_at_the_call_that_was_named_and_reading_does_not_count(
    disk: CrashDisk,
) -> None:
    disk.cut_power_in(3)

    change(disk, write(b"1"), write(b"2"))
    assert read_file(disk, FILE) == b"2ld!"
    with pytest.raises(PowerCut):
        disk.remove(FILE)

    assert disk.exists(FILE)
    disk.cut_power_in(None)
    disk.remove(FILE)


@pytest.mark.parametrize(
    "accident",
    [
        lambda disk: disk.cut_power_in(1),
        lambda disk: disk.fail(lambda action, path: OSError(errno.EIO, "broken")),
    ],
    ids=["power", "disk"],
)
def test_write_that_is_interrupted_leaves_half_of_it(
    disk: CrashDisk, accident: Callable[[CrashDisk], object]
) -> None:
    accident(disk)

    with pytest.raises((PowerCut, OSError)):
        change(disk, write(b"abcd"))

    assert read_file(disk, FILE) == b"abd!"


def test_power_that_goes_during_a_sync_has_synced_nothing(disk: CrashDisk) -> None:
    disk.cut_power_in(2)

    with pytest.raises(PowerCut):
        change(disk, write(b"new!"), sync)

    assert b"old!" in contents(disk)


@pytest.mark.parametrize(
    ("action", "call"),
    [
        ("create", lambda disk: disk.open("/data/new", create=True)),
        ("write", lambda disk: change(disk, write(b"x"))),
        ("sync", lambda disk: change(disk, sync)),
        ("truncate", lambda disk: change(disk, cut(0))),
        ("make_directory", lambda disk: disk.make_directory("/data/new")),
        ("sync_directory", lambda disk: disk.sync_directory(FOLDER)),
        ("rename", lambda disk: disk.rename(FILE, "/data/new")),
        ("remove", lambda disk: disk.remove(FILE)),
    ],
)
def test_chosen_calls_fail_as_ordered_and_have_changed_nothing(
    disk: CrashDisk, action: str, call: Callable[[CrashDisk], object]
) -> None:
    asked = []

    def full(name: str, path: str) -> OSError | None:
        asked.append((name, path))
        return OSError(errno.ENOSPC, "full") if name == action else None

    disk.fail(full)
    with pytest.raises(OSError, match="full"):
        call(disk)
    disk.fail(None)

    places = {"create": "/data/new", "make_directory": "/data/new"}
    places["sync_directory"] = FOLDER
    assert asked == [(action, places.get(action, FILE))]
    assert disk.list(FOLDER) == ["file"]
    assert contents(disk) == {b"old!"}
    call(disk)


def test_flipped_bit_is_there_for_good(disk: CrashDisk) -> None:
    disk.flip_bit(FILE, 1, 3)

    assert contents(disk) == {b"o" + bytes([ord("l") ^ 8]) + b"d!"}


# Disks that lie


def test_disk_that_does_not_honour_syncs_may_lose_what_was_synced() -> None:
    disk = with_file(honours_sync=False)

    assert {b"", b"old!"} <= contents(disk)


def test_disk_that_does_not_honour_directory_syncs_may_lose_names() -> None:
    disk = with_file(honours_directory_sync=False)

    assert contents(disk) == {None, b"old!"}


@pytest.mark.parametrize("switch", ["honours_sync", "honours_directory_sync"])
def test_disk_that_lies_goes_on_lying_after_a_power_cut(switch: str) -> None:
    lies = CrashDisk(**{switch: False}).crashed(Random(0))
    lies.make_directory(FOLDER)
    lies.sync_directory("/")
    replace_file(lies, FILE, b"new")

    assert contents(lies) - {b"new"}
