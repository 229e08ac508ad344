"""Samples have the shape that statistics read."""

from __future__ import annotations

import json
import time

from penstock.pipeline.samples import of_bulks, sample
from penstock.pipeline.writing import Bulk


def test_a_sample_says_what_how_long_how_many_and_when() -> None:
    before_ms = time.time_ns() // 1_000_000

    told = json.loads(sample("processing", 12.34567, 8))

    assert told.pop("at_ms") >= before_ms
    assert told == {"kind": "processing", "ms": 12.346, "count": 8}


def test_a_sample_may_have_no_time() -> None:
    assert json.loads(sample("tick", None, 0))["ms"] is None


def test_a_bulk_counts_tweets() -> None:
    (told,) = of_bulks([Bulk("users", 1.5, documents=2, events=7)])

    assert json.loads(told)["kind"] == "users"
    assert json.loads(told)["count"] == 7
