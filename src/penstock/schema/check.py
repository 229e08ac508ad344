"""Whether payloads fit a schema, and where and why one does not.

The validator is compiled when the first payload comes. It fetches nothing: references
lead nowhere but into the document. Its patterns know neither look-around nor back
references, so that no pattern takes more than linear time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.errors import InvalidSchema
from penstock.schema.document import NOT_JSON, Schema, parsed, step
from penstock.schema.formats import FREER

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

DRAFT = "https://json-schema.org/draft/2020-12/schema"
# A reason is read by a person, and repeated in answers of every protocol.
MAX_REASON_CHARACTERS = 300
_SHOWN_CHARACTERS = 60
_MAX_BRANCHES = 5
# Stands for the value in messages of the validator, so that it can be cut.
_MASK = "\ue000"
# A branch of a union that fails with one of these was hardly meant.
_OTHER_BRANCH = ("const", "enum", "type", "required")

_decode = msgspec.json.decode


class Misfit(NamedTuple):
    """Where a payload does not fit, and why."""

    path: str
    reason: str


class Checker:
    """Checks payloads against one schema, given as JSON text."""

    __slots__ = ("_schema", "_validator")

    def __init__(self, schema: bytes) -> None:
        self._schema = schema
        self._validator: Draft202012Validator | None = None

    def misfit(self, payload: bytes) -> Misfit | None:
        """What is wrong with a payload; None if it fits. Raises InvalidSchema."""
        if self._validator is None:
            self._validator = compiled(parsed(self._schema))
        try:
            value = _decode(payload)
        except NOT_JSON as error:
            why = str(error).removeprefix("JSON is malformed: ")
            return Misfit("$", _cut(f"is not JSON: {_lowered(why)}"))
        return misfit_of(self._validator, value)

    def misfits(self, payloads: Iterable[bytes]) -> Iterator[tuple[int, Misfit]]:
        """Those that do not fit, by index."""
        for index, payload in enumerate(payloads):
            if (found := self.misfit(payload)) is not None:
                yield index, found


def compiled(document: Schema) -> Draft202012Validator:
    """A validator; raises InvalidSchema for what is no schema of draft 2020-12."""
    # Takes tens of milliseconds to load, and few brokers have no time but schemas.
    import jsonschema_rs

    said = document.get("$schema", DRAFT) if isinstance(document, dict) else DRAFT
    if str(said).rstrip("#") != DRAFT:
        raise InvalidSchema('$["$schema"]', f"has to be {DRAFT}")
    try:
        return jsonschema_rs.Draft202012Validator(
            document,
            validate_formats=True,
            formats=FREER,
            mask=_MASK,
            pattern_options=jsonschema_rs.RegexOptions(),
            offline=True,
        )
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchema(_path(error), _reason(error)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("$", _cut(_lowered(str(error)))) from None


def misfit_of(validator: Draft202012Validator, value: Any) -> Misfit | None:
    """Where a value does not fit, as near to the cause as can be told."""
    try:
        if validator.is_valid(value):
            return None
        error = next(validator.iter_errors(value))
    except (ValueError, RecursionError) as failure:
        return Misfit("$", _cut(f"cannot be checked: {_lowered(str(failure))}"))
    return _explained(error)


def _explained(error: ValidationError) -> Misfit:
    import jsonschema_rs

    kinds = jsonschema_rs.ValidationErrorKind
    path, kind = _path(error), error.kind
    if isinstance(kind, kinds.Required):
        return Misfit(path + step(kind.property), "is required")
    if isinstance(kind, kinds.AdditionalProperties | kinds.UnevaluatedProperties):
        return Misfit(path + step(kind.unexpected[0]), "is not allowed here")
    if isinstance(kind, kinds.AnyOf | kinds.OneOfNotValid):
        return _of_branches(error, kind.context)
    return Misfit(path, _reason(error))


def _of_branches(
    error: ValidationError, branches: list[list[ValidationError]]
) -> Misfit:
    """The reason of the branch that was meant; of all of them if that is not clear."""
    depth = len(error.instance_path)
    meant = [
        branch
        for branch in branches
        if branch
        and not any(
            one.kind.name in _OTHER_BRANCH and len(one.instance_path) <= depth + 1
            for one in branch
        )
    ]
    tagged = [
        branch
        for branch in branches
        if branch
        and not any(
            one.kind.name in ("const", "enum") or len(one.instance_path) == depth
            for one in branch
        )
    ]
    for found in (meant, tagged):
        if len(found) == 1:
            return _explained(found[0][0])
    reasons = [_explained(branch[0]) for branch in branches[:_MAX_BRANCHES] if branch]
    path = _path(error)
    said = [
        one.reason if one.path == path else f"{one.path} {one.reason}"
        for one in reasons
    ]
    return Misfit(path, _cut("fits no alternative: " + "; ".join(dict.fromkeys(said))))


def _path(error: ValidationError) -> str:
    return _cut("$" + "".join(map(step, error.instance_path)))


def _reason(error: ValidationError) -> str:
    shown = ""
    if _MASK in error.message:
        try:
            shown = msgspec.json.encode(error.instance).decode()
        except (*NOT_JSON, TypeError):
            shown = "the value"
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "…"
    return _cut(error.message.replace(_MASK, shown))


def _cut(text: str) -> str:
    line = text.split("\n")[0]
    if len(line) <= MAX_REASON_CHARACTERS:
        return line
    return line[: MAX_REASON_CHARACTERS - 1] + "…"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
