"""TLS from the client's side: whom it trusts, who it says it is, what can go wrong."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.errors import InvalidOption, TlsFailed

# How OpenSSL names what a peer says that wants a certificate of ours, or another one.
_OURS = ("CERTIFICATE_REQUIRED", "ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE")
# The same in TLS 1.2, which has no word of its own for it.
_HANDSHAKE = "HANDSHAKE_FAILURE"
# What a peer is told that speaks another protocol.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
# The first bytes of an alert: what a port that speaks TLS answers to anything else.
ALERT = b"\x15\x03"
# What is known of a connection that ends in the middle of a handshake.
CUT = "it was closed during the handshake; does it speak TLS there?"
_WANTS_TLS = "it speaks TLS there"
SHOW_ONE_HINT = (
    "perhaps it asks for a certificate that it trusts: "
    "--cert-file, --key-file (cert_file, key_file)"
)
WANTS_TLS_HINT = "say penstock+tls://HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """``ca_file``: certificates that vouch for the server's; None: the system's.

    ``cert_file`` and ``key_file``: what the client shows, if the server asks for it.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def __post_init__(self) -> None:
        if self.key_file is not None and self.cert_file is None:
            raise InvalidOption("key_file", self.key_file, "left out without cert_file")

    def context(self) -> ssl.SSLContext:
        """For handshakes; the host's name is checked. Raises InvalidOption."""
        with _refused("ca_file", self.ca_file):
            context = ssl.create_default_context(cafile=self.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.cert_file is not None:
            with _refused("cert_file", self.cert_file):
                # Without a password at hand one would be asked for on the terminal.
                context.load_cert_chain(self.cert_file, self.key_file, password="")
        return context


def failed(where: object, error: BaseException) -> TlsFailed | None:
    """What a person can make of it; None if it is nothing of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(where, error)
    if not isinstance(error, ssl.SSLError):
        return None
    reason = error.reason or ""
    if any(word in reason for word in _OURS):
        text = "it does not accept our certificate, or misses one"
        return TlsFailed(str(where), text, SHOW_ONE_HINT)
    if any(word in reason for word in _NOT_TLS):
        text = "it does not speak TLS there"
        return TlsFailed(str(where), text, "say penstock://HOST:PORT, or another port")
    if _HANDSHAKE in reason:
        return TlsFailed(str(where), "it ended the handshake", SHOW_ONE_HINT)
    return None


def is_cut(error: OSError) -> bool:
    """Whether the peer has gone during a handshake."""
    return isinstance(error, ssl.SSLError | ConnectionError)


def speaks_tls(where: object) -> TlsFailed:
    """The error of who spoke plainly to a port that speaks TLS."""
    return TlsFailed(str(where), _WANTS_TLS, WANTS_TLS_HINT)


def _untrusted(where: object, error: ssl.SSLCertVerificationError) -> TlsFailed:
    text = (error.verify_message or str(error)).strip().rstrip(".")
    text = f"{text[:1].lower()}{text[1:]}"
    hint = "say which certificates vouch for it: --ca-file (ca_file)"
    if "mismatch" in text or "not valid for" in text:
        hint = "call it by a name that its certificate has"
    elif "expired" in text or "not yet valid" in text:
        hint = "it needs a new certificate, or one of the clocks is wrong"
    return TlsFailed(str(where), f"its certificate is not trusted: {text}", hint)


@contextmanager
def _refused(name: str, value: str | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # an SSLError is one
        limit = f"a file of PEM with what belongs to it: {error}"
        raise InvalidOption(name, value, limit) from None
