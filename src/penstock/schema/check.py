"""Whether payloads fit a schema, and where and why one does not.

The validator is compiled when the first payload comes. It fetches nothing: references
lead nowhere but into the document. Its patterns know neither look-around nor back
references, so that no pattern takes more than linear time.

What payloads that come together may take is bounded by what the schema weighs
(weight.py) times the places in all of them; what is beyond that is refused unchecked.
Places are only counted if the size of a batch does not say already that they are few
enough. Where a payload does not fit is told if that is bearable.

The validator is quick to say no. Why not, it tells of every branch of every union that
was tried, which may be without end where unions hold each other. So the branches are
counted first, and what would take too long is refused without a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.errors import InvalidSchema, TooMuchWork
from penstock.schema.document import NOT_JSON, Schema, parsed, resolved, step
from penstock.schema.effort import Effort
from penstock.schema.formats import FREER
from penstock.schema.weight import weight_of

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError


# Schemas in branches of unions, each of which may have a reason of its own.
MAX_BRANCHED = 500
# Schemas that are looked at to find them.
_MAX_LOOKED = 5_000
_MAX_DEPTH = 100

_UNIONS = ("anyOf", "oneOf")
_BESIDE = ("not", "if", "then", "else", "propertyNames")


def can_tell(schema: Schema, value: Any) -> bool:
    """Whether the reasons are few enough."""
    try:
        _Count(schema).see(schema, value, 0, 0)
    except TooMuchWork:
        return False
    return True


class _Count:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._looked = Effort(_MAX_LOOKED)
        self._branched = Effort(MAX_BRANCHED)

    def see(self, node: Any, value: Any, depth: int, branch: int) -> None:
        """``branch``: 1 inside of a union, else 0."""
        if not isinstance(node, dict):
            return
        self._looked.spend(1 if depth < _MAX_DEPTH else _MAX_LOOKED + 1)
        self._branched.spend(branch)
        for key in _UNIONS:
            for one in node.get(key, ()):
                self.see(one, value, depth + 1, 1)
        for one in self._beside(node):
            self.see(one, value, depth + 1, branch)
        if isinstance(value, dict):
            self._members(node, value, depth + 1, branch)
        elif isinstance(value, list):
            self._items(node, value, depth + 1, branch)

    def _beside(self, node: dict[str, Any]) -> list[Any]:
        found = [node[key] for key in _BESIDE if key in node]
        if isinstance(said := node.get("$ref"), str):
            # What is named in another way is not looked at, and so not told.
            target = resolved(self._root, said)
            if target is None:
                self._looked.spend(_MAX_LOOKED + 1)
            found.append(target)
        if "$dynamicRef" in node:
            self._looked.spend(_MAX_LOOKED + 1)
        return [*found, *node.get("allOf", ()), *_of_map(node, "dependentSchemas")]

    def _members(
        self, node: dict[str, Any], value: dict[str, Any], depth: int, branch: int
    ) -> None:
        named = node.get("properties", {})
        others = [*_of_map(node, "patternProperties"), node.get("additionalProperties")]
        others.append(node.get("unevaluatedProperties"))
        for name, one in value.items():
            for part in (named.get(name), *others):
                self.see(part, one, depth, branch)

    def _items(
        self, node: dict[str, Any], value: list[Any], depth: int, branch: int
    ) -> None:
        first = node.get("prefixItems", [])
        rest = [node.get(key) for key in ("items", "contains", "unevaluatedItems")]
        for index, one in enumerate(value):
            for part in (*first[index : index + 1], *rest):
                self.see(part, one, depth, branch)


def _of_map(node: dict[str, Any], key: str) -> list[Any]:
    return list(node.get(key, {}).values())


DRAFT = "https://json-schema.org/draft/2020-12/schema"
# A reason is read by a person, and repeated in answers of every protocol.
MAX_REASON_CHARACTERS = 300
# What a schema weighs that every user may have; most weigh less than 50.
ORDINARY_WEIGHT = 200
# Weight times places of all payloads of one call: less than a tenth of a second.
MAX_CHECKS = 4_000_000
# The same of ordinary schemas, whose payloads need a fraction of it but in an attack.
MAX_ORDINARY_CHECKS = 5_000_000
# A place takes at least a digit and a comma.
_PLACE_BYTES = 2
# A pattern reads so much of a string in the time that it weighs.
_STRING_BYTES = 32
# Of the payloads of a batch that do not fit so many are told why, each of them is.
MAX_TOLD = 100
# Of a pattern, compiled; the regular expressions of a new schema.
MAX_PATTERN_BYTES = 1 << 18

_SHOWN_CHARACTERS = 60
_MAX_BRANCHES = 5
# Stands for the value in messages of the validator, so that it can be cut.
_MASK = "\ue000"
# A branch of a union that fails with one of these was hardly meant.
_OTHER_BRANCH = ("const", "enum", "type", "required")

# What the validator says of a pattern, also if it is too large.
_NO_PATTERN = 'is not a "regex"'
# Instead of a reason that would take too long to find.
UNTOLD = "does not fit; where is not told: that would take too long"

# Of payloads behind those that took all that is allowed.
_BEYOND = "cannot be checked: too many checks of what was published together"

_decode = msgspec.json.decode


class Misfit(NamedTuple):
    """Where a payload does not fit, and why."""

    path: str
    reason: str


class Checker:
    """Checks payloads against one schema, given as JSON text."""

    __slots__ = ("_document", "_schema", "_validator", "_weight")

    def __init__(self, schema: bytes) -> None:
        self._schema = schema
        self._validator: Draft202012Validator | None = None
        self._document: Schema = True
        self._weight = 0

    def misfit(self, payload: bytes) -> Misfit | None:
        """What is wrong with a payload; None if it fits. Raises InvalidSchema."""
        return next((found for _, found in self.misfits([payload])), None)

    def misfits(self, payloads: Sequence[bytes]) -> Iterator[tuple[int, Misfit]]:
        """Those that do not fit, by index; raises InvalidSchema.

        So are those that are not checked because all together would take too long.
        """
        validator = self._compiled()
        left, beyond = MAX_TOLD, self._beyond(payloads)
        for index, payload in enumerate(payloads):
            found = beyond.get(index) if beyond else None
            if found is None:
                document = self._document if left > 0 else None
                found = _misfit(validator, payload, document)
            if found is not None:
                left -= 1
                yield index, found

    def _compiled(self) -> Draft202012Validator:
        if self._validator is None:
            self._document = parsed(self._schema)
            self._weight = _weight(self._document)
            self._validator = compiled(self._document)
        return self._validator

    def _beyond(self, payloads: Sequence[bytes]) -> dict[int, Misfit]:
        """Why some are not checked, by index.

        One that is too large by itself counts for nothing, those behind it are checked;
        when all that is allowed is spent, nothing more is.
        """
        ordinary = self._weight <= ORDINARY_WEIGHT
        most = MAX_ORDINARY_CHECKS if ordinary else MAX_CHECKS
        places = sum(map(len, payloads)) // _PLACE_BYTES + len(payloads)
        if self._weight * places <= most:
            return {}
        found: dict[int, Misfit] = {}
        spent = 0
        for index, payload in enumerate(payloads):
            checks = 0 if spent > most else self._weight * _places(payload)
            if checks > most:
                why = f"is too large for this schema: {checks} checks at worst"
                found[index] = Misfit("$", f"{why}, limit {most}")
                continue
            spent += checks
            if spent > most:
                found[index] = Misfit("$", f"{_BEYOND}, limit {most}")
        return found


def compiled(
    document: Schema, max_pattern_bytes: int | None = None
) -> Draft202012Validator:
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
            pattern_options=jsonschema_rs.RegexOptions(max_pattern_bytes),
            offline=True,
        )
    except jsonschema_rs.ValidationError as error:
        reason = _reason(error)
        if max_pattern_bytes is not None and reason.endswith(_NO_PATTERN):
            reason += f", or one of more than {max_pattern_bytes} bytes, compiled"
        raise InvalidSchema(_path(error), reason) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("$", _cut(_lowered(str(error)))) from None


def _misfit(
    validator: Draft202012Validator, payload: bytes, document: Schema | None
) -> Misfit | None:
    try:
        value = _decode(payload)
    except NOT_JSON as error:
        why = str(error).removeprefix("JSON is malformed: ")
        return Misfit("$", _cut(f"is not JSON: {_lowered(why)}"))
    return misfit_of(validator, value, document)


def misfit_of(
    validator: Draft202012Validator, value: Any, document: Schema | None
) -> Misfit | None:
    """Where a value does not fit, as near to the cause as can be told.

    Without a document it is not told.
    """
    try:
        if validator.is_valid(value):
            return None
        if document is None or not can_tell(document, value):
            return Misfit("$", UNTOLD)
        return _explained(_first_error(validator, value))
    except (ValueError, RecursionError) as failure:
        return Misfit("$", _cut(f"cannot be checked: {_lowered(str(failure))}"))


def _first_error(validator: Draft202012Validator, value: Any) -> ValidationError:
    import jsonschema_rs

    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return error
    # Only iter_errors is sure to have one; it makes all of them.
    return next(validator.iter_errors(value))


def _weight(document: Schema) -> int:
    try:
        return weight_of(document)
    except InvalidSchema:  # it was stored before weights were counted
        return ORDINARY_WEIGHT


def _places(payload: bytes) -> int:
    """At most so many places has a document of this text; long strings are several."""
    long = len(payload) // _STRING_BYTES
    return 1 + payload.count(b",") + payload.count(b"[") + payload.count(b"{") + long


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
