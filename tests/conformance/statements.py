"""Which normative statements of the specifications a test shows.

    @statement("MQTT-3.1.0-1")        of MQTT 5.0
    @statement311("MQTT-3.1.0-1")     of MQTT 3.1.1

Marks are read from the source by ``page.py``. docs/protocols/mqtt.md has the tables;
tests/test_mqtt_statements.py compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def statement(*ids: str) -> Callable[[Test], Test]:
    """The test shows these statements of MQTT 5.0."""
    assert ids, "a mark names what is shown"
    return lambda test: test


def statement311(*ids: str) -> Callable[[Test], Test]:
    """The test shows these statements of MQTT 3.1.1."""
    assert ids, "a mark names what is shown"
    return lambda test: test
