from __future__ import annotations

import pytest

from penstock.wire.http_guess import FIRST_BYTES, Guess, guess

REQUESTS = [
    b"GET / HTTP/1.1\r\n",
    b"POST /topics?x HTTP/1.1\r\n",
    b"HEAD http://localhost/ HTTP/1.1\r\n",
    b"OPTIONS * HTTP/1.1\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\n",
    b"PUT /x HTTP/1.0\r\n",
    b"PRI * HTTP/2.0\r\n",
]
LINES = [
    b"pub t {}\n",
    b"sub GET\n",
    b"ack t 1\n",
    b"as anna\n",
    b"log GET\n",
    b"LOG anna\n",
    b'{"type":"PUB"}\n',
    b"666|F|60|50\r\n",
    b"15\n",
    b"twitter\n",
    b"\n",
    b"GETTING /\n",
    b"POST office\n",
    b"Get /\n",
    b"\x16\x04",
    b"P\n",
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_is_known_however_it_comes_in_pieces(request_: bytes) -> None:
    found = [guess(request_[:size]) for size in range(1, len(request_))]

    known = found.index(Guess.HTTP)
    assert set(found[:known]) <= {Guess.PERHAPS}
    assert set(found[known:]) == {Guess.HTTP}
    assert known < FIRST_BYTES


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_no_request(line: bytes) -> None:
    assert guess(line) is Guess.OTHER


def test_a_handshake_of_tls_is_known() -> None:
    assert guess(b"\x16") is Guess.PERHAPS
    assert guess(b"\x16\x03\x01") is Guess.TLS
