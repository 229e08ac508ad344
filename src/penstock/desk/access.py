"""What may be asked of the desk, and by whom: one table of verbs.

All clients may ask for what only shows something (``READING``), what is about one
topic, make topics, and commit what a query of theirs has staged. Users with rules need
a rule for the topic: which kind is in the table; what is about all topics is not for
them. Whatever else there is changes what others rely on, and needs an administrator; so
does a verb that is in no table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.access.grants import Grants
from penstock.broker.broker import Broker
from penstock.errors import AN_ADMINISTRATOR, InvalidSchema, NotAllowed, TooLarge
from penstock.schema import ORDINARY_WEIGHT
from penstock.schema.document import canonical, parsed

VerbArguments = Mapping[str, object]

# Shows something about all topics, and changes nothing.
READING = frozenset(
    {
        "topics",
        "schemas",
        "schemas.mode",
        "dead-letters",
        "dead-letters.groups",
        "dead-letters.show",
        "dead-letters.audit",
        "errors",
        "errors.groups",
        "errors.show",
        "events.find",
        "chains.show",
        "mqtt.sessions",
        "mqtt.sessions.show",
        "mqtt.retained",
        "sinks",
        "overview",
        "connections",
        "flow",
        "processes",
        "pipeline",
    }
)
# The verb, the argument that is its topic, and what is needed there.
ABOUT_A_TOPIC: Mapping[str, tuple[str, Callable[[Grants, str], None]]] = {
    "topics.show": ("name", Grants.check_see),
    "topics.offset_at": ("name", Grants.check_see),
    "topics.describe": ("name", Grants.check_see),
    "topics.comments": ("name", Grants.check_see),
    "schemas.show": ("topic", Grants.check_see),
    "schemas.mock": ("topic", Grants.check_see),
    "schemas.check": ("topic", Grants.check_publish),
    "subscriptions": ("topic", Grants.check_see),
    "subscriptions.show": ("topic", Grants.check_see),
    "events.show": ("topic", Grants.check_read),
    "logs": ("topic", Grants.check_read),
    "mqtt.retained.show": ("topic", Grants.check_read),
}
# Of a query that writes: it is no other user's, and all that is staged has to be its
# user's to publish.
ABOUT_A_QUERY = frozenset({"sinks.last", "sinks.commit", "sinks.abort"})
CREATE = "topics.create"
# In the name of a subscriber.
PROGRESS = "subscriptions.progress"
OPEN_TO_ALL = READING | ABOUT_A_TOPIC.keys() | ABOUT_A_QUERY | {CREATE, PROGRESS}
# Changes something after all, if this argument is given.
CHANGES = {
    "topics.describe": "text",
    "schemas.mode": "mode",
    # Work on a schema of the user's own: for users who may have it stored.
    "schemas.check": "schema",
}
# What the maker of a topic says of it, and the argument that is the topic.
REGISTER, DESCRIBE = "schemas.register", "topics.describe"
BEGINNING = {REGISTER: "topic", DESCRIBE: "name"}


def check_verb(grants: Grants, broker: Broker, verb: str, said: VerbArguments) -> None:
    """Whether a verb may be asked with these arguments; raises NotAllowed.

    The arguments need not be right: whatever is no name is not allowed.
    """
    if grants.admin:
        return
    said = {name: value for name, value in said.items() if value is not None}
    if verb not in OPEN_TO_ALL or CHANGES.get(verb) in said:
        if grants.rules is None and _begins(broker, verb, said):
            _check_ordinary(grants, broker, verb, said)
            return
        raise _refusal(grants, verb, said, AN_ADMINISTRATOR)
    if verb in ABOUT_A_QUERY and isinstance(query := said.get("query"), str):
        check_owner(grants, broker, query)
    if grants.rules is not None:
        _check_rules(grants, broker, verb, said)


def owner_of(grants: Grants) -> str:
    """Whose a query is that they begin; empty: no owner. No user has such a name."""
    return grants.user or (AN_ADMINISTRATOR if grants.admin else "")


def check_owner(grants: Grants, broker: Broker, query: str) -> None:
    """Whether a query is theirs, or has no owner; raises NotAllowed."""
    owner = broker.sinks.owner(query)
    if owner and owner != grants.user and not grants.admin:
        action = "write with the query of another user,"
        raise NotAllowed(grants.user, action, query, needs=AN_ADMINISTRATOR)


def _check_rules(
    grants: Grants, broker: Broker, verb: str, said: VerbArguments
) -> None:
    if verb in ABOUT_A_TOPIC:
        argument, check = ABOUT_A_TOPIC[verb]
        if isinstance(topic := said.get(argument), str):
            check(grants, topic)
            return
    elif verb == PROGRESS:
        topic, name = said.get("topic"), said.get("subscriber")
        if isinstance(topic, str) and isinstance(name, str):
            grants.check_subscribe(topic, name)
            return
    elif verb == CREATE and said.keys() == {"name"}:
        if isinstance(topic := said["name"], str):
            _check_create(grants, topic)
            return
    elif verb in ABOUT_A_QUERY and isinstance(query := said.get("query"), str):
        _check_query(grants, broker, query)
        return
    raise _refusal(grants, verb, said)


def _begins(broker: Broker, verb: str, said: VerbArguments) -> bool:
    """Whether it is the first word on a topic that no client uses yet, or no change.

    Programs say what their topics are like whenever they start.
    """
    topic = said.get(BEGINNING.get(verb, ""))
    if not isinstance(topic, str):
        return False
    metadata = broker.registry[topic]
    known = metadata.latest if verb == REGISTER else metadata.documentation
    if known is None:
        log = broker.log
        return not log.has_topic(topic) or not log.topic(topic).next_offset
    return verb == REGISTER and _is_latest(broker, topic, said)


def _check_ordinary(
    grants: Grants, broker: Broker, verb: str, said: VerbArguments
) -> None:
    """All other clients wait while payloads are checked; raises NotAllowed.

    What is no schema is left to the verb, which says what is wrong with it.
    """
    if verb != REGISTER or _is_latest(broker, str(said["topic"]), said):
        return
    try:
        weight = broker.registry.weight(said.get("schema"))
    except (InvalidSchema, TooLarge):
        return
    if weight > ORDINARY_WEIGHT:
        what = f"register a schema that weighs {weight} (limit {ORDINARY_WEIGHT}) for"
        topic = str(said["topic"])
        raise NotAllowed(grants.user, what, topic, needs=AN_ADMINISTRATOR)


def _is_latest(broker: Broker, topic: str, said: VerbArguments) -> bool:
    metadata = broker.registry[topic]
    if metadata.latest is None or said.get("mode", metadata.mode) != metadata.mode:
        return False
    try:
        return canonical(parsed(said.get("schema"))) == metadata.latest.schema
    except InvalidSchema:
        return False


def _check_create(grants: Grants, topic: str) -> None:
    """Publishing and subscribing would make it as well."""
    if not grants.may_subscribe(topic):
        grants.check_publish(topic)


def check_writes(grants: Grants, query: str) -> None:
    """Whether they may publish anything at all; raises NotAllowed."""
    rules = grants.rules
    if rules is not None and all(rule.action != "publish" for rule in rules):
        raise NotAllowed(grants.user, "write with query", query)


def _check_query(grants: Grants, broker: Broker, query: str) -> None:
    check_writes(grants, query)
    for staged in broker.sinks.staging.of_query(query).values():
        for part in staged.parts.values():
            for piece in part:
                if piece.batch is not None:
                    grants.check_publish(piece.batch.topic)


def _refusal(
    grants: Grants, verb: str, said: VerbArguments, needs: str = ""
) -> NotAllowed:
    topic = said.get("topic", said.get("name"))
    if isinstance(topic, str):
        return NotAllowed(grants.user, f"ask for {verb} of", topic, needs=needs)
    return NotAllowed(grants.user, f"ask for {verb}", needs=needs)
