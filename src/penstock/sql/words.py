"""Words of a query, and which of them only stand in a text or a comment.

``offset`` is a word of SQL, and a column of every topic. DuckDB takes it for the clause
wherever it stands bare. Here it is a column unless a number or a bracket follows, as
behind ``LIMIT 10 OFFSET 20``.
"""

from __future__ import annotations

import re

# Texts, names in quotes and comments, which are left as they are; or the word itself.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$\$.*?\$\$"""
    r"""|(?P<word>(?<![\w."$])offset(?![\w"$]))(?P<clause>\s*[\d(?$:])?""",
    re.IGNORECASE | re.DOTALL,
)
# Texts and comments; or a name in quotes, in which neither begins.
_SILENT = re.compile(
    r"""("(?:[^"]|"")*")|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\$\$.*?\$\$""", re.DOTALL
)


def spoken(query: str) -> str:
    """The query without its texts and comments."""
    return _SILENT.sub(lambda found: found[1] or " ", query)


def with_column(query: str) -> str:
    """The query with quotes around ``offset`` where it is a column."""
    return _TOKEN.sub(_quoted, query)


def _quoted(found: re.Match[str]) -> str:
    if found["word"] is None or found["clause"] is not None:
        return found[0]
    return f'"{found["word"]}"'
