"""The table of routes: which request is which question to the desk.

``{name}`` is one segment of the path; ``topic`` is the argument ``name`` of verbs about
topics. What else a verb takes comes from the query of a GET or DELETE, where filters
are flat, and from the body of a POST or PUT. The name of the sender is never taken from
the request.

``SPECIAL`` are the routes that are more than that; add to it what has a module of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.http.access import Access
from penstock.http.bodies import CheckBody, EditBody, RequestBody
from penstock.http.call import Special, SpecialSocket
from penstock.http.event_routes import EVENTS
from penstock.http.figure_routes import FIGURES
from penstock.http.health import HEALTH
from penstock.http.session_routes import SESSION
from penstock.http.sql_routes import SQL
from penstock.http.token_routes import TOKENS

RouteArguments = dict[str, object]

_OF_TOPIC = {"topic": "name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A question to the desk.

    ``names``: parameters of the path that the verb calls otherwise. ``without``:
    arguments that are not taken; ``required``: those that have to be there, whatever
    the verb says. ``changing``: those in the body that only administrators may give.
    ``body``: if it is not just the arguments. ``arrange`` has the last word on them.
    """

    method: str
    path: str
    verb: str
    access: Access
    status: int = 200
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    without: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    changing: frozenset[str] = frozenset()
    body: type[RequestBody] | None = None
    arrange: Callable[[RouteArguments], RouteArguments] | None = None
    topic: str = "topic"

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")


def _read(path: str, verb: str, **more: object) -> Route:
    return _route("GET", path, verb, Access.READ, **more)


def _see(path: str, verb: str, **more: object) -> Route:
    return _route("GET", path, verb, Access.SEE, **more)


def _change(method: str, path: str, verb: str, **more: object) -> Route:
    return _route(method, path, verb, Access.ADMIN, **more)


def _route(method: str, path: str, verb: str, access: Access, **more: object) -> Route:
    # The callers are below, each with fields of Route.
    fields = {"method": method, "path": path, "verb": verb, "access": access, **more}
    return Route(**fields)  # type: ignore[arg-type]


def _one_question(arguments: RouteArguments) -> RouteArguments:
    """A chain is asked for by id, or by a place, or goes on."""
    if arguments.get("next") is not None:
        return {"next": arguments["next"]}
    if arguments.get("topic") is not None:
        return {key: value for key, value in arguments.items() if key != "id"}
    return arguments


_TOPIC = "/v1/topics/{topic}"
_SUBSCRIPTION = "/v1/subscriptions/{subscriber}/{topic}"
_RETAINED = "/v1/mqtt/retained/{topic}"
_NAMED = {"names": _OF_TOPIC}

ROUTES: tuple[Route, ...] = (
    # Topics
    _read("/v1/topics", "topics"),
    _route("POST", "/v1/topics", "topics.create", Access.CREATE, status=201),
    _see(_TOPIC, "topics.show", **_NAMED),
    _change("DELETE", _TOPIC, "topics.delete", **_NAMED),
    _see(f"{_TOPIC}/offset", "topics.offset_at", **_NAMED),
    _see(
        f"{_TOPIC}/documentation",
        "topics.describe",
        **_NAMED,
        without=frozenset({"text"}),
    ),
    _change(
        "PUT",
        f"{_TOPIC}/documentation",
        "topics.describe",
        **_NAMED,
        required=frozenset({"text"}),
    ),
    _see(f"{_TOPIC}/comments", "topics.comments", **_NAMED),
    _change("POST", f"{_TOPIC}/comments", "topics.comment", **_NAMED, status=201),
    _change("DELETE", f"{_TOPIC}/comments/{{number}}", "topics.uncomment", **_NAMED),
    # It shows payloads: for those who may read them.
    _route("GET", f"{_TOPIC}/log", "logs", Access.FOLLOW),
    # Schemas
    _read("/v1/schemas", "schemas"),
    _see(f"{_TOPIC}/schema", "schemas.show"),
    _change("PUT", f"{_TOPIC}/schema", "schemas.register"),
    _route(
        "POST",
        f"{_TOPIC}/schema/check",
        "schemas.check",
        Access.PUBLISH,
        body=CheckBody,
        # A schema that is not the topic's: for those who may change it.
        changing=frozenset({"schema"}),
    ),
    _see(f"{_TOPIC}/schema/mock", "schemas.mock"),
    _change(
        "PUT", f"{_TOPIC}/schema/mode", "schemas.mode", required=frozenset({"mode"})
    ),
    # Subscriptions
    _read("/v1/subscriptions", "subscriptions"),
    _see(_SUBSCRIPTION, "subscriptions.show"),
    _change("DELETE", _SUBSCRIPTION, "subscriptions.forget"),
    _change("POST", f"{_SUBSCRIPTION}/seek", "subscriptions.seek"),
    _change("POST", f"{_SUBSCRIPTION}/resume", "subscriptions.resume"),
    # Dead letters and errors
    _read("/v1/dead-letters", "dead-letters"),
    _read("/v1/dead-letters/groups", "dead-letters.groups"),
    _read("/v1/dead-letters/audit", "dead-letters.audit"),
    _read("/v1/dead-letters/{number}", "dead-letters.show"),
    _change("POST", "/v1/dead-letters/republish", "dead-letters.republish"),
    _change("POST", "/v1/dead-letters/drop", "dead-letters.drop"),
    _change(
        "POST",
        "/v1/dead-letters/{number}/edit",
        "dead-letters.edit",
        body=EditBody,
    ),
    _read("/v1/errors", "errors"),
    _read("/v1/errors/groups", "errors.groups"),
    _read("/v1/errors/{number}", "errors.show"),
    # MQTT
    _read("/v1/mqtt/sessions", "mqtt.sessions"),
    _read("/v1/mqtt/sessions/{client}", "mqtt.sessions.show"),
    _change("DELETE", "/v1/mqtt/sessions/{client}", "mqtt.sessions.end"),
    _read("/v1/mqtt/retained", "mqtt.retained"),
    _route("GET", _RETAINED, "mqtt.retained.show", Access.FOLLOW),
    _change("DELETE", _RETAINED, "mqtt.retained.forget"),
    # Chains
    _read("/v1/events/{id}/chain", "chains.show", arrange=_one_question),
    # The broker at work
    _read("/v1/overview", "overview"),
    _read("/v1/flow", "flow"),
    _read("/v1/connections", "connections"),
    _read("/v1/processes", "processes"),
    # It names files and folders of the server.
    _route("GET", "/v1/config", "config", Access.ADMIN),
    _read("/v1/pipeline", "pipeline"),
    _read("/v1/sinks", "sinks"),
    _route("GET", "/v1/users/usage", "users.usage", Access.ADMIN),
)

SPECIAL: tuple[Special | SpecialSocket, ...] = (
    *HEALTH,
    *SESSION,
    *TOKENS,
    *EVENTS,
    *FIGURES,
    *SQL,
)
