"""The flags that are settings, the same for all commands that take settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from penstock.cli.refusal import Refusal
from penstock.config import Flag, Settings, load
from penstock.config.tree import SETTINGS
from penstock.config.values import OFF

# Flag -> its setting, and what it is called in the help.
VALUES = {
    "--data": ("server.data", "DIR"),
    "--host": ("server.host", "HOST"),
    "--users-file": ("server.users_file", "FILE"),
    "--line-port": ("listen.line_port", "PORT"),
    "--consumer-port": ("listen.consumer_port", "PORT"),
    "--publisher-port": ("listen.publisher_port", "PORT"),
    "--maze-event-port": ("listen.maze_event_port", "PORT"),
    "--maze-client-port": ("listen.maze_client_port", "PORT"),
    "--native-port": ("listen.native_port", "PORT"),
    "--control-port": ("listen.control_port", "PORT"),
    "--http-port": ("listen.http_port", "PORT"),
    "--mqtt-port": ("listen.mqtt_port", "PORT"),
    "--mqtts-port": ("listen.mqtts_port", "PORT"),
    "--tls-cert": ("tls.cert_file", "FILE"),
    "--tls-key": ("tls.key_file", "FILE"),
    "--tls-client-ca": ("tls.client_ca_file", "FILE"),
}

# Flag -> the flags of the ports that it switches off, and whose they are.
SWITCHES = {
    "--no-line": (("--line-port",), "line"),
    "--no-json": (("--consumer-port", "--publisher-port"), "JSON"),
    "--no-maze": (("--maze-event-port", "--maze-client-port"), "maze"),
    "--no-native": (("--native-port",), "native"),
    "--no-http": (("--http-port",), "HTTP"),
    "--no-mqtt": (("--mqtt-port", "--mqtts-port"), "MQTT"),
}

HELP = {
    "--data": "Keep everything in this directory.",
    "--host": "Listen on this address. Other than loopback needs a users file.",
    "--users-file": "Ask for a login, with the users of this file.",
    "--line-port": "Port of the line gateway.",
    "--consumer-port": "Port of the JSON gateway for consumers.",
    "--publisher-port": "Port of the JSON gateway for publishers.",
    "--maze-event-port": "Port of the maze gateway for the event source.",
    "--maze-client-port": "Port of the maze gateway for clients.",
    "--native-port": "Port of the native gateway, which penstock commands use.",
    "--control-port": "Port of the control gateway, which shows tweets. Default: off.",
    "--http-port": "Port of the HTTP gateway, with the dashboard.",
    "--mqtt-port": "Port of the MQTT gateway.",
    "--mqtts-port": "Port of the MQTT gateway over TLS; needs --tls-cert.",
    "--tls-cert": "Certificate of the server, for TLS.",
    "--tls-key": "Private key of the certificate, if it is in another file.",
    "--tls-client-ca": "Check certificates of clients against those of this file.",
}

FlaggedCommand = Callable[..., None]


def setting_flags(command: FlaggedCommand) -> FlaggedCommand:
    """The command with all these flags; they reach it in its keyword arguments."""
    for name, (_, gateway) in reversed(SWITCHES.items()):
        help_ = f"Leave the {gateway} gateway off."
        command = click.option(name, is_flag=True, help=help_)(command)
    for name, (key, metavar) in reversed(VALUES.items()):
        help_ = f"{HELP[name]}{_default(key)}"
        command = click.option(name, metavar=metavar, help=help_)(command)
    help_ = "Read settings from this TOML file. Default: $PENSTOCK_CONFIG, if set."
    return click.option("--config", metavar="FILE", help=help_)(command)


def settings_of(given: Mapping[str, Any]) -> Settings:
    """The settings, from all sources; raises ConfigError or Refusal."""
    return load(given["config"], list(flags_of(given)))


def flags_of(given: Mapping[str, Any]) -> Iterator[Flag]:
    """The flags that were given, as the configuration wants them."""
    for name, (key, _) in VALUES.items():
        text = given[_parameter(name)]
        if text is not None:
            yield Flag(key, name, text)
    for name, (ports, _) in SWITCHES.items():
        if not given[_parameter(name)]:
            continue
        for port in ports:
            if given[_parameter(port)] is not None:
                raise Refusal(f"{port} and {name} exclude each other")
            yield Flag(VALUES[port][0], name, OFF)


def _parameter(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _default(key: str) -> str:
    default = SETTINGS[key].default
    return "" if default is None else f" Default: {default}."
