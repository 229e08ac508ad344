from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.torture.notes import ROOM, WriteNotes, WrittenRange

# A process of its own: it changes what files do there.
CHILD = """
import sys
from pathlib import Path
from penstock.files import Files
from penstock.torture.notes import WriteNotes, note_files
note_files(WriteNotes(Path(sys.argv[1])))
files = Files()
one = files.open(sys.argv[2] + "/one", write=True, create=True)
two = files.open(sys.argv[2] + "/two", write=True, create=True)
files.write(one, [b"abc", b"de"], 0)
files.write(two, [b"xyz"], 0)
files.sync(one)
files.write(one, [b"fg"], 5)
files.write(one, [b"h"], 7)
"""


def test_what_was_not_synced_is_known_when_the_process_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    notes = WriteNotes.made(path)

    subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(tmp_path)], check=True, timeout=60
    )

    one = (tmp_path / "one").stat().st_ino
    two = (tmp_path / "two").stat().st_ino
    assert notes.unsynced() == {
        one: [WrittenRange(5, 2), WrittenRange(7, 1)],
        two: [WrittenRange(0, 3)],
    }
    notes.clear()
    assert notes.unsynced() == {}


@pytest.mark.slow
def test_more_than_there_is_room_for_is_as_if_all_were_synced(tmp_path: Path) -> None:
    notes = WriteNotes.made(tmp_path / "notes")
    for number in range(ROOM // 24 + 1):
        notes.add(7, number, 1)

    assert notes.unsynced() == {}
