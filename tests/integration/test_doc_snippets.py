"""Python snippets of the documentation run, and print what stands behind them.

The snippets of a page are one program, run in order in an empty directory. A block of
text right behind a snippet is what the snippet prints.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SNIPPET = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


class Snippet(NamedTuple):
    line: int
    code: str
    output: str


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    return [
        Snippet(
            text.count("\n", 0, found.start("code")),
            found["code"],
            found["output"] or "",
        )
        for found in SNIPPET.finditer(text)
    ]


# Their snippets need a session of Spark and topics, or a database, of the reader's own;
# tests/spark and tests/contract run the same calls, and examples/spark is played whole.
PARTS = {"spark.md", "store.md"}
PAGES = [
    page
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if page.name not in PARTS and snippets(page)
]


def test_the_pages_that_have_snippets_are_found() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}

    assert {"README.md", "docs/log.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_print_what_stands_behind_them(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if any("pyarrow" in snippet.code for snippet in snippets(page)):
        pytest.importorskip("pyarrow", reason="component: pyarrow (not installed)")
    names: dict[str, object] = {"__name__": page.stem}

    for snippet in snippets(page):
        printed = io.StringIO()
        # Leading lines make a traceback name the line of the page.
        code = compile("\n" * snippet.line + snippet.code, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)

        assert printed.getvalue() == snippet.output, snippet.code
