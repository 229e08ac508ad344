from __future__ import annotations

from dataclasses import fields

import pytest

from penstock.errors import InvalidOption
from penstock.log.options import LogOptions, TopicOptions
from penstock.model.columns import MAX_FRAME_BYTES


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("durability", "maybe"),
        ("segment_bytes", 1023),
        ("retention_age_s", 0),
        ("retention_age_s", -1.5),
        ("retention_bytes", 0),
        ("retention_bytes", 1 << 63),
        ("segment_bytes", 1 << 63),
        ("segment_age_s", 0),
        ("expires_s", 0),
        ("expires_s", 1e12),
    ],
)
def test_topic_setting_outside_its_limits_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidOption) as caught:
        TopicOptions(**{name: value})  # type: ignore[arg-type]

    assert (caught.value.name, caught.value.value) == (name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("journal_file_bytes", 1023),
        ("checkpoint_bytes", 0),
        ("group_bytes", 1023),
        ("write_out_bytes", -1),
        ("tail_cache_bytes", -1),
        ("start_check_bytes", -1),
        ("max_event_bytes", 0),
        ("max_event_bytes", MAX_FRAME_BYTES // 2 + 1),
        ("max_topics", 0),
        # One group can become one frame, and a frame has a largest size.
        ("group_bytes", 1 << 40),
    ],
)
def test_log_setting_outside_its_limits_is_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidOption) as caught:
        LogOptions(**{name: value})  # type: ignore[arg-type]  # by name

    assert (caught.value.name, caught.value.value) == (name, value)


def test_limits_themselves_are_accepted() -> None:
    TopicOptions(segment_bytes=1024, retention_bytes=1, retention_age_s=0.001)
    LogOptions(
        journal_file_bytes=1024,
        checkpoint_bytes=1024,
        group_bytes=1024,
        write_out_bytes=0,
        tail_cache_bytes=0,
        start_check_bytes=0,
        max_event_bytes=MAX_FRAME_BYTES // 2,
        max_topics=1,
    )


@pytest.mark.parametrize("kind", [TopicOptions, LogOptions])
def test_every_setting_is_described(
    kind: type[TopicOptions] | type[LogOptions],
) -> None:
    assert kind.__doc__ is not None

    assert [f.name for f in fields(kind) if f.name not in kind.__doc__] == []
