"""The dashboard's files: built by ``make web``, sent with the right to keep them.

``/`` leads to ``/ui/``, every path below ``/ui/`` is the page itself, which knows its
own routes, and ``/assets/…`` are its files: their names change with their content, so
they may be kept for ever. A file is found by looking its path up in a table of what
there is, never by making a path from a request.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Scope

STATIC = Path(__file__).with_name("static")
INDEX = "index.html"
NOT_BUILT = "The dashboard is not built: run make web (needs Node 20)\n"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"

# The system's table need not know them, or may know them otherwise.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file in memory."""

    data: bytes
    media_type: str
    etag: str
    keep: str


class StaticFiles:
    """Read when they are first asked for, and again when they were built again."""

    def __init__(self, directory: Path = STATIC) -> None:
        self._directory = directory
        self._built: tuple[int, int] | None = None
        self._files: dict[tuple[str, ...], StaticFile] = {}

    def find(self, scope: Scope, segments: tuple[str, ...]) -> Response | None:
        """The answer to a request for a page or file; None if it is for none."""
        if scope["method"] not in ("GET", "HEAD") or segments[0] == "v1":
            return None
        if segments in (("",), ("ui",)):
            return self._home()
        self._look()
        index = self._files.get((INDEX,))
        if index is None:
            return _not_built() if segments[0] == "ui" else None
        page = index if segments[0] == "ui" else self._files.get(segments)
        return None if page is None else _answer(page, Headers(scope=scope))

    def _home(self) -> Response:
        self._look()
        if (INDEX,) not in self._files:
            return _not_built()
        return RedirectResponse("/ui/", 307, {"cache-control": ASK_AGAIN})

    def _look(self) -> None:
        try:
            status = (self._directory / INDEX).stat()
            built: tuple[int, int] | None = status.st_mtime_ns, status.st_ino
        except OSError:
            built = None
        if built != self._built:
            self._built = built
            self._files = {} if built is None else _read(self._directory)


def _read(directory: Path) -> dict[tuple[str, ...], StaticFile]:
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            place = path.relative_to(directory).parts
            found[place] = _page(path, FOR_EVER if place[0] == "assets" else ASK_AGAIN)
    return found


def _page(path: Path, keep: str) -> StaticFile:
    data = path.read_bytes()
    guess = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    return StaticFile(data, _TYPES.get(path.suffix, guess), etag, keep)


def _answer(page: StaticFile, asked: Headers) -> Response:
    headers = {"cache-control": page.keep, "etag": page.etag}
    if asked.get("if-none-match") == page.etag:
        return Response(status_code=304, headers=headers)
    return Response(page.data, 200, headers, page.media_type)


def _not_built() -> Response:
    return PlainTextResponse(NOT_BUILT, 503, {"cache-control": "no-store"})
