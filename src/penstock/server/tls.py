"""TLS of the listeners: our certificate, and whose certificates of clients count."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import InvalidOption
from penstock.server.options import TlsOptions


def context_of(options: TlsOptions) -> ssl.SSLContext | None:
    """What a listener needs; None without a certificate. Raises InvalidOption."""
    if options.cert_file is None:
        return None
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


@contextmanager
def _refused(name: str, value: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # an SSLError is one
        limit = f"a file of PEM with what belongs to it: {error}"
        raise InvalidOption(name, value, limit) from None
