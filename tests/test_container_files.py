"""The files for containers name what there is: commands, settings, ports, services.

They are built and run by ``tests/process/test_container.py``, in ``make deep``.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
import yaml  # type: ignore[import-untyped]  # it has none

from penstock.cli.main import cli
from penstock.config.sources import SHORTCUTS, of_environment
from penstock.config.tree import SETTINGS
from penstock.supervisor import plan

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "container"
CONTAINERFILE = FOLDER / "Containerfile"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
# Those that run a command of Penstock, not the database.
OURS = [name for name, one in SERVICES.items() if one["image"] == "penstock-pipeline"]
PORTS = {
    setting.default
    for setting in SETTINGS.values()
    if setting.table == "listen" and setting.default is not None
}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


def instructions() -> Iterator[tuple[str, str]]:
    """What the Containerfile says, each with what stands behind it."""
    lines = (
        line
        for line in CONTAINERFILE.read_text().splitlines()
        if not line.startswith("#")
    )
    for step in re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).split("\n"):
        if step:
            word, _, rest = step.partition(" ")
            yield word, rest


def said(word: str) -> str:
    (only,) = [rest for name, rest in instructions() if name == word]
    return only


def variables() -> dict[str, str]:
    """The environment that the Containerfile gives."""
    return dict(one.split("=", 1) for one in shlex.split(said("ENV")))


def environment(service: str) -> dict[str, str]:
    return {**variables(), **SERVICES[service].get("environment", {})}


def parsed(service: str) -> click.Context:
    """The command of a service, as Penstock takes it."""
    command: click.Command = cli
    words = shlex.split(SERVICES[service]["command"])
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None
        command = found
    return command.make_context(command.name, words)


def health_check() -> list[str]:
    """What the Containerfile has carried out to see whether a server is well."""
    checked: list[str] = json.loads(said("HEALTHCHECK").partition("CMD ")[2])
    return checked


def is_setting(name: str) -> bool:
    return name.startswith("PENSTOCK_")


def test_it_is_not_root_and_may_write_its_volume_only() -> None:
    user, _, group = said("USER").partition(":")

    assert int(user) > 0
    assert int(group) > 0
    assert f"install -d -m 0700 -o {user} -g {group} {said('VOLUME')}" in said("RUN")
    assert f"useradd --uid {user} --gid {group}" in said("RUN")
    assert said("VOLUME") == variables()["PENSTOCK_DATA"] == said("WORKDIR")


def test_it_is_closed_unless_somebody_opens_it() -> None:
    """Beyond its container it is seen, so without users it does not start."""
    assert variables()["PENSTOCK_HOST"] == "0.0.0.0"
    assert "--insecure" not in said("CMD") + said("ENTRYPOINT")


def test_its_command_is_one_of_penstock() -> None:
    assert json.loads(said("ENTRYPOINT")) == ["penstock"]
    assert json.loads(said("CMD"))[0] == "serve"


def test_its_ports_are_those_of_the_settings() -> None:
    assert {int(port) for port in said("EXPOSE").split()} == PORTS


def test_its_extras_are_those_of_the_wheel() -> None:
    (extras,) = [
        rest.removeprefix("EXTRAS=")
        for word, rest in instructions()
        if word == "ARG" and rest.startswith("EXTRAS=")
    ]

    asked = [extras, SERVICES["broker"]["build"]["args"]["EXTRAS"]]

    assert {one for some in asked for one in some.split(",")} <= set(EXTRAS)


def test_its_health_check_asks_what_there_is() -> None:
    program, option, script = health_check()
    (port,) = re.findall(r"'127\.0\.0\.1', (\d+),", script)
    (path,) = re.findall(r"'GET', '(/\w+)'", script)
    compile(script, "health", "exec")

    assert (program, option) == ("python3", "-c")
    assert int(port) == SETTINGS["listen.http_port"].default
    assert f"| `GET {path}` | none |" in (ROOT / "docs" / "http.md").read_text()


def test_the_base_is_named_without_a_registry() -> None:
    names = [
        *(rest.removeprefix("BASE=") for word, rest in instructions() if word == "ARG"),
        *(one["image"] for one in SERVICES.values()),
    ]

    assert [name for name in names if "/" in name] == []


@pytest.mark.parametrize("service", OURS)
def test_a_service_runs_a_command_as_it_is(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)

    assert parsed(service).params


@pytest.mark.parametrize("service", OURS)
def test_a_variable_is_a_setting_or_known_to_commands(service: str) -> None:
    asked = {n: v for n, v in environment(service).items() if is_setting(n)}

    found = {value.setting.key for value in of_environment(asked)}

    assert found == {SHORTCUTS[name] for name in variables() if is_setting(name)}


def test_whom_a_service_talks_to_is_there() -> None:
    told = environment("ingest")
    replicas = SERVICES["replica-set"]["command"]
    hosts = [
        told["PENSTOCK_SERVER"].partition(":")[0],
        urlsplit(told["PENSTOCK_STORE"]).hostname,
        *(urlsplit(url).hostname for url in parsed("ingest").params["urls"]),
        *re.findall(r"--host (\S+)", replicas),
        *re.findall(r"host: '(\w+):27017'", replicas),
    ]

    assert len(hosts) == 6
    assert set(hosts) <= set(SERVICES)
    for one in SERVICES.values():
        assert set(one.get("depends_on", {})) <= set(SERVICES)


def test_the_replica_set_is_called_the_same_everywhere() -> None:
    asked = urlsplit(environment("cdc")["PENSTOCK_STORE"]).query
    (made,) = re.findall(r"initiate\({_id: '(\w+)'", SERVICES["replica-set"]["command"])

    assert asked == f"replicaSet={made}"
    assert f"--replSet {made} " in SERVICES["store"]["command"]


def test_ports_that_services_are_asked_at_are_theirs() -> None:
    told = environment("ingest")
    native = SETTINGS["listen.native_port"].default
    source = re.search(r"--port (\d+)", SERVICES["source"]["command"])

    assert told["PENSTOCK_SERVER"] == f"broker:{native}"
    assert source is not None
    assert f"//source:{source[1]}/" in SERVICES["ingest"]["command"]


def test_the_broker_is_open_to_this_machine_only() -> None:
    control = parsed("broker").params["control_port"]

    for port in SERVICES["broker"]["ports"]:
        address, outside, inside = port.split(":")
        assert address == "127.0.0.1"
        assert outside == inside
        assert int(inside) in PORTS | {int(control)}
    assert [name for name in SERVICES if "ports" in SERVICES[name]] == ["broker"]


def test_the_broker_is_asked_for_its_health_as_in_the_containerfile() -> None:
    asked = shlex.split(SERVICES["broker"]["healthcheck"]["test"])

    assert asked == health_check()


def test_a_service_has_longer_to_end_than_a_server_takes() -> None:
    for name in OURS:
        grace_s = float(SERVICES[name]["stop_grace_period"].removesuffix("s"))
        assert grace_s > float(str(SETTINGS["server.drain_s"].default))


def test_volumes_are_kept_and_those_of_the_image() -> None:
    mounted = {
        name: volume.split(":")
        for name, one in SERVICES.items()
        for volume in one.get("volumes", [])
    }

    assert {volume for volume, _ in mounted.values()} == set(COMPOSE["volumes"])
    assert {mounted[name][1] for name in mounted if name in OURS} == {said("VOLUME")}


def test_the_image_is_built_from_the_wheel() -> None:
    build = SERVICES["broker"]["build"]
    context = (FOLDER / build["context"]).resolve()

    assert context == ROOT / "dist"
    assert (context / build["dockerfile"]).resolve() == CONTAINERFILE
    assert said("COPY").startswith("penstock-*.whl ")


def test_the_services_do_what_penstock_up_does() -> None:
    ingest = parsed("ingest").params
    cdc = parsed_with_store("cdc").params
    pipeline = parsed_with_store("pipeline").params

    assert ingest["topic"] == pipeline["topic"] == plan.FIREHOSE
    assert ingest["samples"] == plan.SAMPLES
    assert list(ingest["names"]) == [f"tweets-{number}" for number in plan.STREAMS]
    assert [url[-1] for url in ingest["urls"]] == [str(n) for n in plan.STREAMS]
    assert cdc["collections"] == ",".join(plan.COLLECTIONS)
    assert dict(one.split("=") for one in cdc["messages"]) == plan.MESSAGES
    assert list(cdc["priorities"]) == [plan.PRIORITY]
    assert parsed("subscriber").params["topic"] in plan.COLLECTIONS


def parsed_with_store(service: str) -> click.Context:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_STORE", environment(service)["PENSTOCK_STORE"])
        return parsed(service)
