from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from penstock.cli.export_test import written
from penstock.desk.views.events import TryRow
from tests.unit.cli.desk_run import DeskRun
from tests.unit.cli.test_letter_text import EVENT, LETTER

TRACEBACK = """Traceback (most recent call last):
  File "{foreign}/penstock/embedded/job.py", line 3, in run
    await handler(event)
  File "{folder}/shop/billing.py", line 9, in pay
    raise ValueError
  File "{foreign}/lib/python3.11/json/decoder.py", line 1, in decode
ValueError: no
"""


def failure(traceback: str) -> TryRow:
    return TryRow(
        tries=1, at_ms=0, duration_s=None, kind="E", message="m", traceback=traceback
    )


def text(payload: bytes = EVENT.payload, **changes: object) -> str:
    event = msgspec.structs.replace(EVENT, payload=payload)
    return written(msgspec.structs.replace(LETTER, **changes), event)


def test_the_test_hands_the_event_to_the_domain_that_failed() -> None:
    found = text()

    assert "def test_dead_letter_3_billing_orders() -> None:" in found
    assert "    replay(billing, EVENT.topic, EVENT)\n" in found
    assert "from your_app import billing\n" in found
    assert 'PAYLOAD = r"""\n{\n  "a": [\n    1,\n    2\n  ]\n}\n"""' in found
    assert "payload=PAYLOAD.strip().encode()," in found
    assert 'headers={"lang": "de"},' in found


@pytest.mark.parametrize(
    ("folder", "module"),
    [("/srv/app/src", "shop.billing"), ("/srv/app", "billing"), ("app", "billing")],
)
def test_the_module_is_guessed_from_the_traceback(folder: str, module: str) -> None:
    trace = TRACEBACK.format(folder=folder, foreign="/usr")

    assert f"from {module} import billing\n" in text(failures=[failure(trace)])


@pytest.mark.parametrize("root", [".", "src"])
@pytest.mark.parametrize("folder", ["/srv/app", "/srv/app/src", "/srv/python"])
def test_the_module_is_looked_for_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, folder: str
) -> None:
    (tmp_path / root / "shop").mkdir(parents=True)
    (tmp_path / root / "shop" / "billing.py").touch()
    monkeypatch.chdir(tmp_path)
    trace = TRACEBACK.format(folder=folder, foreign="/usr")

    assert "from shop.billing import billing\n" in text(failures=[failure(trace)])


def test_bytes_are_bytes() -> None:
    found = text(b"\xff\"'\n")

    assert "PAYLOAD = b'\\xff\"\\'\\n'" in found
    assert "payload=PAYLOAD,\n" in found


@pytest.mark.slow
@pytest.mark.parametrize(
    "payload",
    [
        b'{"a":"\\"\\"\\"","b":"\\\\"}',
        b'""',
        b"17",
        '["ä", "\\u2028"]'.encode(),
        b"not JSON",
        b'both "quotes" and it\'s',
        b"\x00\xff",
        b"",
    ],
)
@pytest.mark.parametrize("reason", ['"""', "\\d\\", "line\nline"])
def test_any_payload_gives_a_test_that_checkers_accept(
    tmp_path: Path, payload: bytes, reason: str
) -> None:
    headers = {f"name-{number}": "value" * 5 for number in range(5)}
    event = msgspec.structs.replace(EVENT, payload=payload, headers=headers)
    letter = msgspec.structs.replace(LETTER, reason=reason, subscriber="12 class")
    file = tmp_path / "test_it.py"
    file.write_text(written(letter, event), encoding="utf-8")

    scope: dict[str, object] = {}
    source = file.read_text(encoding="utf-8").replace("from your_app", "# from")
    source = source.replace("from penstock.testing", "# from")
    exec(compile(source, str(file), "exec", flags=0, dont_inherit=True), scope)

    made = scope["EVENT"]
    if payload[:1] in (b"{", b"[", b'"', b"1"):
        assert msgspec.json.decode(made.payload) == msgspec.json.decode(payload)  # type: ignore[attr-defined]
    else:
        assert made.payload == payload  # type: ignore[attr-defined]
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", str(file)]
    assert subprocess.run(ruff, capture_output=True).stdout == b""


@pytest.mark.slow
def test_the_usual_test_is_formatted(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(text(), encoding="utf-8")

    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(file)]
    result = subprocess.run(ruff, capture_output=True, text=True)

    assert result.returncode == 0, result.stdout


def test_the_test_is_written_to_a_file_once(run: DeskRun, tmp_path: Path) -> None:
    run.bury("t", "me", b"zero")
    file = tmp_path / "test_it.py"

    run.lines("dead-letters", "export-test", "0", "--out", str(file))
    again = run.refused("dead-letters", "export-test", "0", "--out", str(file))
    forced = run("dead-letters", "export-test", "0", "--out", str(file), "--force")

    assert f"{file} is there already" in again
    assert forced.exit_code == 0
    lines = run.lines("dead-letters", "export-test", "0")
    assert file.read_text().splitlines() == lines


def test_raw_input_makes_no_test(run: DeskRun) -> None:
    with run.server.between:
        run.server._broker.dead_letter(gateway="json", reason="no JSON", raw=b"x")
    run.client.publish("t", b"so that it is committed")

    said = run.refused("dead-letters", "export-test", "0")

    assert "has no event that could be handled again" in said
