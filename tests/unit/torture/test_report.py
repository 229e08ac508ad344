from __future__ import annotations

from collections import Counter
from pathlib import Path

from penstock.torture.report import Report, file_system


def test_a_report_says_what_was_done_and_that_all_is_well() -> None:
    report = Report(
        seed=7,
        disk="ext4",
        seconds=61.4,
        servers=1,
        brokers=2,
        on_disk=Counter({"killed": 3, "stopped": 1}),
        promises=12_345,
        refusals=6,
    )

    text = "\n".join(report.lines())

    assert "every promise held" in text
    assert "seed      7, 61 s" in text
    assert "1 server: 3 killed, 1 stopped" in text
    assert "2 brokers: none yet" in text
    assert "12,345 made" in text
    assert "broken" not in text


def test_a_report_says_what_is_broken_and_where() -> None:
    report = Report(
        7, "ext4", broken="o-1 is lost", where="chapter 1: killed", kept=Path("d/1")
    )

    *_, broken, where, kept = report.lines()

    assert broken == "  broken    o-1 is lost"
    assert where == "  where     chapter 1: killed"
    assert kept == "  kept      d/1"


def test_the_file_system_of_a_directory_is_named(tmp_path: Path) -> None:
    assert file_system(Path("/proc")) == "proc"
    assert file_system(tmp_path).isidentifier()
