"""TLS of the listeners, with certificates that are made here."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.errors import InvalidOption
from penstock.server.options import TlsOptions
from penstock.server.tls import Certificates as Loaded
from penstock.server.tls import context_of, named_by
from tests.interop.certificates import Certificates


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def options(made: Certificates, **more: object) -> TlsOptions:
    certificate, key = map(str, made.server)
    return TlsOptions(cert_file=certificate, key_file=key, **more)  # type: ignore[arg-type]


@contextmanager
def pair(server: ssl.SSLContext) -> Iterator[tuple[socket.socket, Thread]]:
    """A client's end of a connection, and who greets it at the other."""
    with ExitStack() as stack:
        ours, theirs = (stack.enter_context(one) for one in socket.socketpair())
        theirs.settimeout(30.0)
        ours.settimeout(30.0)

        def greet() -> None:
            with suppress(OSError), server.wrap_socket(theirs, server_side=True) as end:
                end.sendall(b"hello")

        greeter = Thread(target=greet)
        greeter.start()
        yield ours, greeter
        ours.close()
        greeter.join()


def greeted(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Whether a client is let in."""
    with pair(server) as (sock, _):
        try:
            with client.wrap_socket(sock, server_hostname="127.0.0.1") as end:
                return end.recv(5) == b"hello"
        except OSError:
            return False


def test_a_client_that_trusts_us_is_let_in(made: Certificates) -> None:
    assert greeted(context_of(options(made)), made.context())


def test_key_and_certificate_may_be_in_one_file(
    made: Certificates, tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_text("".join(one.read_text() for one in made.server))

    assert greeted(context_of(TlsOptions(cert_file=str(both))), made.context())


def test_a_client_that_does_not_trust_us_goes_away(made: Certificates) -> None:
    assert not greeted(context_of(options(made)), ssl.create_default_context())


@pytest.mark.parametrize(
    ("required", "certificate", "let_in"),
    [(True, True, True), (True, False, False), (False, False, True)],
)
def test_certificates_of_clients_may_be_required(
    made: Certificates, *, required: bool, certificate: bool, let_in: bool
) -> None:
    ours = options(
        made, client_ca_file=str(made.authority), require_client_cert=required
    )

    assert greeted(context_of(ours), made.context(client=certificate)) is let_in


@pytest.mark.parametrize(
    ("where", "peercert", "user"),
    [
        ("cn", None, None),
        ("cn", {}, None),
        (
            "cn",
            {"subject": ((("organizationName", "x"),), (("commonName", "anna"),))},
            "anna",
        ),
        (
            "cn",
            {"subject": ((("commonName", "anna"),), (("commonName", "bob"),))},
            None,
        ),
        (
            "dns",
            {"subjectAltName": (("DNS", "one.test"), ("email", "a@b"))},
            "one.test",
        ),
        ("email", {"subjectAltName": (("DNS", "one.test"), ("email", "a@b"))}, "a@b"),
        ("dns", {"subjectAltName": (("DNS", "one.test"), ("DNS", "two.test"))}, None),
        ("email", {"subject": ((("commonName", "anna"),),)}, None),
    ],
)
def test_a_certificate_names_one_user_or_nobody(
    where: str, peercert: dict[str, Any] | None, user: str | None
) -> None:
    assert named_by(peercert, where) == user


def test_files_that_changed_count_from_the_next_handshake_on(
    made: Certificates, tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join(one.read_bytes() for one in made.server))
    certificates = Loaded(TlsOptions(cert_file=str(both)))
    first = certificates()

    certificates.check()
    assert certificates() is first
    both.write_bytes(b"".join(one.read_bytes() for one in made.client))
    certificates.check()

    assert certificates() is not first
    assert not greeted(certificates(), made.context())  # the name is another one


def test_files_that_cannot_be_used_are_told_of_once_and_change_nothing(
    made: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join(one.read_bytes() for one in made.server))
    certificates = Loaded(TlsOptions(cert_file=str(both)))

    both.write_text("half a certifi")
    certificates.check()
    certificates.check()
    both.unlink()
    certificates.check()

    told = [getattr(one, "action", "") for one in caplog.records]
    assert told == ["certificate_failed"] * 2
    assert greeted(certificates(), made.context())


def test_old_versions_are_not_spoken(made: Certificates) -> None:
    assert context_of(options(made)).minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("name", ["cert_file", "key_file", "client_ca_file"])
@pytest.mark.parametrize("content", [None, "no PEM"])
def test_a_file_that_is_not_there_or_no_pem_is_named(
    made: Certificates, tmp_path: Path, name: str, content: str | None
) -> None:
    bad = tmp_path / "bad.pem"
    if content is not None:
        bad.write_text(content)
    certificate, key = map(str, made.server)
    given = {"cert_file": certificate, "key_file": key, name: str(bad)}

    with pytest.raises(InvalidOption, match="PEM"):
        context_of(TlsOptions(**given))  # type: ignore[arg-type]


def test_a_key_of_another_certificate_is_refused(made: Certificates) -> None:
    given = TlsOptions(cert_file=str(made.server[0]), key_file=str(made.client[1]))

    with pytest.raises(InvalidOption, match="what belongs to it"):
        context_of(given)


@pytest.mark.slow
def test_a_key_with_a_password_is_refused_and_none_is_asked_for(
    made: Certificates, tmp_path: Path
) -> None:
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "pkey", "-aes256", "-passout", "pass:x"]
        + ["-in", str(made.server[1]), "-out", str(locked)],
        check=True,
        capture_output=True,
    )

    with pytest.raises(InvalidOption):
        context_of(TlsOptions(cert_file=str(made.server[0]), key_file=str(locked)))
