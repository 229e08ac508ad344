from __future__ import annotations

from pathlib import Path

import pytest

from penstock.config import Flag, Settings, items_of, load
from penstock.config.tree import SETTINGS, TABLES
from penstock.errors import ConfigError, InvalidSetting

PORT = "listen.line_port"


def test_without_any_source_everything_is_the_default() -> None:
    settings = load(environ={})

    assert {table: getattr(settings, table) for table in TABLES} == {
        table: kind() for table, kind in TABLES.items()
    }
    assert set(settings.origins.values()) == {"default"}
    assert set(settings.origins) == set(SETTINGS)
    assert settings.server.data == "penstock-data"


def test_each_source_counts_more_than_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("[listen]\nline_port = 1\nconsumer_port = 1\npublisher_port = 2\n")
    environ = {
        "PENSTOCK_LISTEN_LINE_PORT": "3",
        "PENSTOCK_LISTEN_CONSUMER_PORT": "4",
    }

    settings = load(str(path), [Flag(PORT, "--line-port", "5")], environ)

    listen, origins = settings.listen, settings.origins
    assert (listen.line_port, origins[PORT]) == (5, "flag --line-port")
    assert listen.consumer_port == 4
    assert origins["listen.consumer_port"] == (
        "environment PENSTOCK_LISTEN_CONSUMER_PORT"
    )
    assert listen.publisher_port == 2
    assert origins["listen.publisher_port"] == f"file {path}"
    assert listen.native_port == 8410
    assert origins["listen.native_port"] == "default"


def test_the_file_is_named_by_the_caller_or_else_by_the_environment(
    tmp_path: Path,
) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}").write_text(f"[line]\nwindow = {number}\n")
    environ = {"PENSTOCK_CONFIG": str(tmp_path / "1")}

    assert load(environ=environ).line.window == 1
    assert load(str(tmp_path / "2"), environ=environ).line.window == 2
    assert load(environ={"PENSTOCK_CONFIG": ""}).line.window == 1


def test_the_environment_is_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_LINE_WINDOW", "7")

    assert load().line.window == 7


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (
            {"PENSTOCK_LINE_WINDOW": "0"},
            "environment PENSTOCK_LINE_WINDOW: line.window is 0: must be 1 to 100000",
        ),
        (
            {"PENSTOCK_LISTEN_LINE_PORT": "65536"},
            (
                "environment PENSTOCK_LISTEN_LINE_PORT: listen.line_port is 65536: "
                "must be 0 to 65535"
            ),
        ),
        (
            {"PENSTOCK_LISTEN_PUBLISHER_PORT": "4040"},
            (
                "environment PENSTOCK_LISTEN_PUBLISHER_PORT: "
                "listen.publisher_port is 4040: must be another port than consumer_port"
            ),
        ),
        (
            {"PENSTOCK_LOG_GROUP_BYTES": "1"},
            (
                "environment PENSTOCK_LOG_GROUP_BYTES: log.group_bytes is 1: "
                "must be at least 1024"
            ),
        ),
        (
            {"PENSTOCK_DATA": ""},
            (
                "environment PENSTOCK_DATA: server.data is '': "
                "must be not empty, and without NUL"
            ),
        ),
    ],
)
def test_a_value_outside_its_limits_is_named_with_its_origin(
    environ: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidSetting) as caught:
        load(environ=environ)

    assert str(caught.value) == said


def test_a_bad_value_is_an_error_even_if_another_one_counts_more() -> None:
    with pytest.raises(ConfigError):
        load(
            flags=[Flag(PORT, "--line-port", "1")],
            environ={"PENSTOCK_LISTEN_LINE_PORT": "x"},
        )


def test_items_are_all_settings_in_order() -> None:
    settings = load(environ={"PENSTOCK_HOST": "::1"})

    items = list(items_of(settings))

    assert [setting.key for setting, _, _ in items] == list(SETTINGS)
    assert ("::1", "environment PENSTOCK_HOST") in [item[1:] for item in items]


def test_settings_made_without_a_source_are_the_same() -> None:
    assert list(items_of(Settings())) == list(items_of(load(environ={})))


def test_origins_do_not_change() -> None:
    settings = load(environ={})

    with pytest.raises(TypeError):
        settings.origins["x"] = "y"  # type: ignore[index]
