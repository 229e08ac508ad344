from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from penstock.http.pages import NOT_BUILT, StaticFiles


def ask(
    pages: StaticFiles, *segments: str, method: str = "GET", **headers: str
) -> Response:
    answer = find(pages, *segments, method=method, **headers)
    assert answer is not None
    return answer


def find(
    pages: StaticFiles, *segments: str, method: str = "GET", **headers: str
) -> Response | None:
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    scope: dict[str, Any] = {"type": "http", "method": method, "headers": pairs}
    return pages.find(scope, segments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html>")
    (static / "favicon.svg").write_text("<svg/>")
    (static / "assets" / "app-1a2b.js").write_text("1")
    (static / "assets" / "app-1a2b.css").write_text("a{}")
    (tmp_path / "secret").write_text("secret")
    return static


def test_the_root_leads_to_the_page(folder: Path) -> None:
    for segments in [("",), ("ui",)]:
        answer = ask(StaticFiles(folder), *segments)

        assert answer.status_code == 307
        assert answer.headers["location"] == "/ui/"


@pytest.mark.parametrize(
    "segments", [("ui", ""), ("ui", "topics", "a/b"), ("ui", "..", "..", "secret")]
)
def test_every_path_of_the_page_is_the_page(
    folder: Path, segments: tuple[str, ...]
) -> None:
    answer = ask(StaticFiles(folder), *segments)

    assert answer.body == b"<!doctype html>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("segments", "media_type", "keep"),
    [
        (("assets", "app-1a2b.js"), "text/javascript; charset=utf-8", "immutable"),
        (("assets", "app-1a2b.css"), "text/css; charset=utf-8", "immutable"),
        (("favicon.svg",), "image/svg+xml", "no-cache"),
    ],
)
def test_files_have_their_type_and_may_be_kept(
    folder: Path, segments: tuple[str, ...], media_type: str, keep: str
) -> None:
    answer = ask(StaticFiles(folder), *segments)

    assert answer.headers["content-type"] == media_type
    assert keep in answer.headers["cache-control"]


def test_what_the_browser_has_is_not_sent_again(folder: Path) -> None:
    pages = StaticFiles(folder)
    etag = ask(pages, "ui", "").headers["etag"]

    answer = ask(pages, "ui", "", if_none_match=etag)

    assert answer.status_code == 304
    assert answer.body == b""


@pytest.mark.parametrize(
    "segments",
    [
        ("assets", "..", "index.html"),
        ("assets", "../index.html"),
        ("..", "secret"),
        ("../secret",),
        ("/etc/passwd",),
        ("assets", ""),
        ("assets",),
        ("assets", "nothing.js"),
        ("v1", "nothing"),
        ("", "favicon.svg"),
    ],
)
def test_nothing_else_is_there(folder: Path, segments: tuple[str, ...]) -> None:
    assert find(StaticFiles(folder), *segments) is None


def test_links_lead_nowhere(folder: Path) -> None:
    (folder / "assets" / "link.js").symlink_to(folder.parent / "secret")

    assert find(StaticFiles(folder), "assets", "link.js") is None


def test_pages_are_looked_at_and_not_sent_to(folder: Path) -> None:
    assert find(StaticFiles(folder), "ui", "", method="POST") is None


def test_what_is_built_again_is_read_again(folder: Path) -> None:
    pages = StaticFiles(folder)
    ask(pages, "ui", "")
    index = folder / "index.html"

    index.write_text("<!doctype html><p>new")
    later_ns = index.stat().st_mtime_ns + 1
    os.utime(index, ns=(later_ns, later_ns))

    assert ask(pages, "ui", "").body == b"<!doctype html><p>new"


def test_a_page_that_is_not_built_says_so(tmp_path: Path) -> None:
    pages = StaticFiles(tmp_path / "static")

    for segments in [("",), ("ui", "topics")]:
        answer = ask(pages, *segments)
        assert bytes(answer.body).decode() == NOT_BUILT
        assert answer.status_code == 503
    assert find(pages, "assets", "x.js") is None
