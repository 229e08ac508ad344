"""One setting of an options class: its default, its help text and its limits.

Options classes are frozen dataclasses whose fields are made by ``option`` and which
call ``check_options`` when they are made. The help text is what the documentation
and the command line say of the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import InvalidOption

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


def option(
    default: T,
    help_: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] = (),
) -> T:
    """A dataclass field. ``least`` and ``most`` are allowed themselves."""
    metadata = {
        "help": help_,
        "least": least,
        "most": most,
        "above": above,
        "choices": choices,
    }
    # For the type checker a field is its default, as with dataclasses.field.
    return field(default=default, metadata=metadata)


def check_options(options: DataclassInstance) -> None:
    """Raise InvalidOption for the first field outside its limits; None is inside."""
    for one in fields(options):
        value = getattr(options, one.name)
        limit = limit_of(one.metadata)
        if value is None or not limit:
            continue
        if not _within(one.metadata, value):
            raise InvalidOption(one.name, value, limit)


def limit_of(metadata: Mapping[str, Any]) -> str:
    """The limits of a field in words, or nothing."""
    if metadata.get("choices"):
        return " or ".join(map(repr, metadata["choices"]))
    least, most, above = (metadata.get(name) for name in ("least", "most", "above"))
    if least is not None and most is not None:
        return f"{least} to {most}"
    if least is not None:
        return f"at least {least}"
    if most is not None:
        return f"at most {most}"
    return "" if above is None else f"more than {above}"


def _within(metadata: Mapping[str, Any], value: Any) -> bool:
    if metadata["choices"]:
        return value in metadata["choices"]
    least, most, above = (metadata[name] for name in ("least", "most", "above"))
    # Written so that a number that is none (NaN) is outside.
    return (
        (least is None or value >= least)
        and (most is None or value <= most)
        and (above is None or value > above)
    )
