from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.config.sources import (
    OF_COMMANDS,
    VARIABLES,
    Flag,
    of_environment,
    of_file,
    of_flags,
)
from penstock.config.tree import RENAMED, SETTINGS, variable
from penstock.errors import BadConfigFile, ConfigError, UnknownSetting
from penstock.store import store

Found = list[tuple[str, object, str]]


def test_a_file_gives_the_values_it_has(tmp_path: Path) -> None:
    path = file(tmp_path, "[line]\nmax_line_bytes = '64KiB'\n[listen]\nline_port = 0\n")

    found = [(value.setting.key, *value[1:]) for value in of_file(path)]

    assert found == [
        ("line.max_line_bytes", 65536, f"file {path}"),
        ("listen.line_port", 0, f"file {path}"),
    ]


def test_variables_that_are_options_of_commands_are_no_settings() -> None:
    assert store.VARIABLE in OF_COMMANDS
    assert list(of_environment({store.VARIABLE: "mongodb://h/db"})) == []


@pytest.mark.parametrize("old", RENAMED)
def test_the_name_of_before_is_taken_with_a_hint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, old: str
) -> None:
    path = tmp_path / "penstock.toml"
    table, name = old.split(".")
    path.write_text(f"[{table}]\n{name} = 5\n")

    (of_it,) = of_file(str(path))
    (of_variable,) = of_environment({variable(old): "5"})

    assert of_it.setting is of_variable.setting is SETTINGS[RENAMED[old]]
    assert of_it.value == of_variable.value == 5
    said = [one.getMessage() for one in caplog.records]
    assert f"{old} is called {RENAMED[old]} now" in said[0]
    assert variable(RENAMED[old]) in said[1]


@pytest.mark.parametrize("old", RENAMED)
@pytest.mark.parametrize("names", [("old", "new"), ("new", "old")])
def test_the_new_name_counts_more_than_the_one_of_before(
    tmp_path: Path, old: str, names: tuple[str, str]
) -> None:
    said = {"old": f"{old} = 5\n", "new": f"{RENAMED[old]} = 6\n"}

    of_both = of_file(file(tmp_path, "".join(said[name] for name in names)))

    assert [value.value for value in of_both] == [5, 6]  # later values win


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    assert list(of_file(file(tmp_path, "# nothing\n[line]\n"))) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[line]\nmax_line_byte = 1",
            (
                "file F: unknown setting line.max_line_byte, "
                "did you mean line.max_line_bytes?"
            ),
        ),
        (
            "[line]\nport = 1",
            "file F: unknown setting line.port, did you mean listen.line_port?",
        ),
        ("[lines]", "file F: unknown setting [lines], did you mean [line]?"),
        ("[xyz]", "file F: unknown setting [xyz]"),
        ("data = 'd'", "file F: unknown setting data, did you mean server.data?"),
        ("xyz = 1", "file F: unknown setting xyz"),
        ("line = 5", "file F: line is 5: must be a table, [line]"),
        ("[[line]]", "file F: line is [{}]: must be a table, [line]"),
        ("[line]\nwindow = '1'", "file F: line.window is '1': must be a whole number"),
        (
            "[line.window]\nx = 1",
            "file F: line.window is {'x': 1}: must be a whole number",
        ),
        (
            "[line]\nmax_line_bytes = '1KB'",
            (
                "file F: line.max_line_bytes is '1KB': must be a whole number, "
                "or a size like 64KiB, 1MiB or 1GiB"
            ),
        ),
        (
            "[listen]\nline_port = 'on'",
            "file F: listen.line_port is 'on': must be a whole number, or 'off'",
        ),
        (
            "[topics]\ndurability = 'maybe'",
            "file F: topics.durability is 'maybe': must be 'sync' or 'os'",
        ),
        (
            "[line",
            (
                "configuration file F: Expected ']' at the end of a table declaration "
                "(at end of document)"
            ),
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = file(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        list(of_file(path))

    assert str(caught.value).replace(path, "F") == said


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfigFile, match="No such file or directory"):
        list(of_file(str(tmp_path / "none")))
    with pytest.raises(BadConfigFile, match="Is a directory"):
        list(of_file(str(tmp_path)))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b"\xff")

    with pytest.raises(BadConfigFile, match="is not UTF-8 text"):
        list(of_file(str(tmp_path / "p.toml")))


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, []),
        ({"HOME": "/", "PENSTOCKER": "1", "penstock_line_window": "2"}, []),
        ({"PENSTOCK_CONFIG": "p.toml"}, []),
        ({"PENSTOCK_LINE_WINDOW": "3"}, [("line.window", 3, "PENSTOCK_LINE_WINDOW")]),
        ({"PENSTOCK_DATA": "d"}, [("server.data", "d", "PENSTOCK_DATA")]),
        ({"PENSTOCK_HOST": "::1"}, [("server.host", "::1", "PENSTOCK_HOST")]),
        # A service of that name, in Kubernetes or linked by Docker.
        (
            {
                "PENSTOCK_SERVICE_HOST": "10.0.0.1",
                "PENSTOCK_SERVICE_PORT": "8000",
                "PENSTOCK_SERVICE_PORT_LINE": "8000",
                "PENSTOCK_PORT": "tcp://10.0.0.1:8000",
                "PENSTOCK_PORT_8000_TCP": "tcp://10.0.0.1:8000",
                "PENSTOCK_PORT_8000_TCP_ADDR": "10.0.0.1",
            },
            [],
        ),
    ],
)
def test_the_environment_gives_the_values_it_has(
    environ: dict[str, str], found: Found
) -> None:
    values = [(value.setting.key, *value[1:]) for value in of_environment(environ)]

    assert values == [(key, value, f"environment {name}") for key, value, name in found]


def test_the_full_name_of_a_variable_counts_more_than_the_short_one() -> None:
    environ = {"PENSTOCK_SERVER_DATA": "full", "PENSTOCK_DATA": "short"}

    values = list(of_environment(environ))

    assert [value.value for value in values] == ["short", "full"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "PENSTOCK_LINE_WINDO",
            "1",
            (
                "environment: unknown setting PENSTOCK_LINE_WINDO, "
                "did you mean PENSTOCK_LINE_WINDOW?"
            ),
        ),
        (
            "PENSTOCK_CONFG",
            "1",
            (
                "environment: unknown setting PENSTOCK_CONFG, "
                "did you mean PENSTOCK_CONFIG?"
            ),
        ),
        (
            "PENSTOCK_PORT",
            "80",
            "environment: unknown setting PENSTOCK_PORT, did you mean PENSTOCK_HOST?",
        ),
        (
            "PENSTOCK_LINE_WINDOW",
            "many",
            (
                "environment PENSTOCK_LINE_WINDOW: line.window is 'many': "
                "must be a whole number"
            ),
        ),
    ],
)
def test_what_is_wrong_in_the_environment_is_named(
    name: str, value: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        list(of_environment({name: value}))

    assert str(caught.value) == said


def test_flags_give_their_values() -> None:
    flags = [
        Flag("listen.line_port", "--line-port", "81"),
        Flag("listen.native_port", "--no-native", "off"),
    ]

    found = [(value.setting.key, *value[1:]) for value in of_flags(flags)]

    assert found == [
        ("listen.line_port", 81, "flag --line-port"),
        ("listen.native_port", None, "flag --no-native"),
    ]


def test_what_is_wrong_in_a_flag_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        list(of_flags([Flag("listen.line_port", "--line-port", "http")]))

    assert str(caught.value) == (
        "flag --line-port: listen.line_port is 'http': must be a whole number, or 'off'"
    )


@pytest.mark.slow
@given(st.sampled_from(sorted(SETTINGS)), st.data())
def test_one_letter_too_few_is_an_error_that_names_the_right_key(
    key: str, data: st.DataObject
) -> None:
    variable = SETTINGS[key].variable
    at = data.draw(st.integers(len("PENSTOCK_"), len(variable) - 1))
    wrong = variable[:at] + variable[at + 1 :]
    assume(wrong not in VARIABLES)  # mqtts_port without its s is another one

    with pytest.raises(UnknownSetting) as caught:
        list(of_environment({wrong: "1"}))

    assert caught.value.nearest


def file(folder: Path, text: str) -> str:
    path = folder / "penstock.toml"
    path.write_text(text)
    return str(path)
