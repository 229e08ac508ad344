"""Certificates for tests, made at the moment they are needed with ``openssl``."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

DAYS = "2"
# Keys that take no time to make.
CURVE = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


class Certificates:
    """An authority, and what it has signed: ``server`` and ``client``."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("component: openssl (not installed)")
        self._folder = folder
        self.authority = folder / "authority.pem"
        _openssl(
            *("req", "-x509", "-newkey", *CURVE, "-noenc", "-days", DAYS),
            *("-subj", "/CN=Test authority", "-keyout", folder / "authority.key"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
            *("-out", self.authority),
        )
        self.server = self.signed("server", "subjectAltName=IP:127.0.0.1")
        self.client = self.signed("client")

    def context(
        self, *, client: bool = False, shown: tuple[Path, Path] | None = None
    ) -> ssl.SSLContext:
        """What a client trusts and, if asked for, who it says it is."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if client or shown is not None:
            context.load_cert_chain(*(shown or self.client))
        return context

    def signed(
        self, name: str, extension: str = "extendedKeyUsage=clientAuth"
    ) -> tuple[Path, Path]:
        """A certificate of that common name, and its key."""
        request, key = self._folder / f"{name}.csr", self._folder / f"{name}.key"
        certificate, extensions = (self._folder / f"{name}.{end}" for end in EXTRAS)
        extensions.write_text(extension + "\n")
        _openssl(
            *("req", "-newkey", *CURVE, "-noenc", "-subj", f"/CN={name}"),
            *("-keyout", key, "-out", request),
        )
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.authority, "-days", DAYS),
            *("-CAkey", self._folder / "authority.key", "-CAcreateserial"),
            *("-extfile", extensions, "-out", certificate),
        )
        return certificate, key


EXTRAS = ("pem", "extensions")


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
