"""TLS of the listeners: our certificate, and whose certificates of clients count.

The files are looked at once a second: a certificate that was renewed is shown to those
who come then, connections that stand go on.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.errors import InvalidOption
from penstock.files import FileStamp
from penstock.server.options import TlsOptions

logger = logging.getLogger(__name__)

# Where a certificate has names, as getpeercert() calls it.
_BESIDE = {"dns": "DNS", "email": "email"}


class Certificates:
    """The TLS of all ports, as the files are; made only if there is a certificate."""

    def __init__(self, options: TlsOptions) -> None:
        """Raises InvalidOption if they cannot be used."""
        self._options = options
        # The stamps first: a change in between is then seen at the next look.
        self._seen = self._stamps()
        self._context = context_of(options)

    def __call__(self) -> ssl.SSLContext:
        """What the next handshake goes by."""
        return self._context

    def check(self) -> None:
        """Load the files anew if they have changed; called now and then."""
        stamps = self._stamps()
        if stamps == self._seen:
            return
        self._seen = stamps
        try:
            self._context = context_of(self._options)
        except InvalidOption as error:
            logger.error(
                "the certificate stays as it was: %s",
                error,
                extra={"action": "certificate_failed"},
            )
            return
        logger.info(
            "%s was read again",
            self._options.cert_file,
            extra={"action": "certificate_reloaded"},
        )

    def _stamps(self) -> list[FileStamp | None]:
        files = self._options
        named = (files.cert_file, files.key_file, files.client_ca_file)
        return [_stamp(name) for name in named if name is not None]


def context_of(options: TlsOptions) -> ssl.SSLContext:
    """What a handshake goes by. Raises InvalidOption."""
    assert options.cert_file is not None, "without a certificate there is no TLS"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with _refused("cert_file", options.cert_file):
        # Without a password at hand one would be asked for on the terminal.
        context.load_cert_chain(options.cert_file, options.key_file, password="")
    if options.client_ca_file is not None:
        with _refused("client_ca_file", options.client_ca_file):
            context.load_verify_locations(options.client_ca_file)
        required = options.require_client_cert
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def named_by(peercert: Mapping[str, Any] | None, where: str) -> str | None:
    """The user that a certificate names; None if it does not, or has several names.

    ``peercert`` was verified and is as ``getpeercert`` has it; ``where`` is a value of
    ``tls.cert_users``.
    """
    if not peercert:
        return None
    if where == "cn":
        parts = [part for parts in peercert.get("subject", ()) for part in parts]
        names = [value for key, value in parts if key == "commonName"]
    else:
        beside = peercert.get("subjectAltName", ())
        names = [value for kind, value in beside if kind == _BESIDE[where]]
    return names[0] if len(names) == 1 else None


def _stamp(name: str) -> FileStamp | None:
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


@contextmanager
def _refused(name: str, value: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # an SSLError is one
        limit = f"a file of PEM with what belongs to it: {error}"
        raise InvalidOption(name, value, limit) from None
