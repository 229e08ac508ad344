"""What users with rules may ask of the desk.

A verb about one topic needs a rule for that topic; which kind of rule is in a table.
A verb that is not in it shows, or changes, more than rules can be about: it is for
users without rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.broker.access import Grants
from penstock.broker.broker import Broker
from penstock.errors import NotAllowed

Arguments = Mapping[str, object]

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
    "subscriptions.progress": ("topic", Grants.check_subscribe),
    "events.show": ("topic", Grants.check_read),
    "logs": ("topic", Grants.check_read),
    "mqtt.retained.show": ("topic", Grants.check_read),
}
# Of a query that writes: all that is staged has to be its user's to publish.
ABOUT_A_QUERY = frozenset({"sinks.last", "sinks.commit", "sinks.abort"})
CREATE = "topics.create"
# Of a verb that only reads without it: what would be written, or stand in its place.
CHANGING = frozenset({"text", "schema"})


def check_verb(grants: Grants, broker: Broker, verb: str, said: Arguments) -> None:
    """Whether a verb may be asked with these arguments; raises NotAllowed.

    The arguments need not be right: whatever is no name is not allowed.
    """
    if grants.rules is None:
        return
    said = {name: value for name, value in said.items() if value is not None}
    if verb in ABOUT_A_TOPIC and not CHANGING & said.keys():
        argument, check = ABOUT_A_TOPIC[verb]
        if isinstance(topic := said.get(argument), str):
            check(grants, topic)
            return
    elif verb == CREATE and said.keys() == {"name"}:
        if isinstance(topic := said["name"], str):
            _check_create(grants, topic)
            return
    elif verb in ABOUT_A_QUERY and isinstance(query := said.get("query"), str):
        _check_query(grants, broker, query)
        return
    raise _refusal(grants, verb, said)


def _check_create(grants: Grants, topic: str) -> None:
    """Publishing and subscribing would make it as well."""
    if not grants.may_subscribe(topic):
        grants.check_publish(topic)


def _check_query(grants: Grants, broker: Broker, query: str) -> None:
    assert grants.rules is not None, "all others may"
    if all(rule.action != "publish" for rule in grants.rules):
        raise NotAllowed(grants.user, "write with query", query)
    for staged in broker.sinks.staging.of_query(query).values():
        for part in staged.parts.values():
            for piece in part:
                if piece.batch is not None:
                    grants.check_publish(piece.batch.topic)


def _refusal(grants: Grants, verb: str, said: Arguments) -> NotAllowed:
    topic = said.get("topic", said.get("name"))
    if isinstance(topic, str):
        return NotAllowed(grants.user, f"ask for {verb} of", topic)
    return NotAllowed(grants.user, f"ask for {verb}")
