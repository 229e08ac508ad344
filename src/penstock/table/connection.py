"""How to get to the events of a broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.client.tls import Tls
from penstock.errors import InvalidOption

# How long a broker that is away is waited for: a restart with recovery takes seconds.
RETRY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAccess:
    """Where events are: a data directory to read, a broker to ask, or both."""

    servers: tuple[str, ...]
    path: str | None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: str | None = None
    retry_s: float = RETRY_S
    tls: Tls = Tls()
    token: str | None = field(default=None, repr=False)
    name: str = ""
    """What the broker sees in its list of connections."""

    def secret(self) -> str | None:
        """The password; a file of it is read where it is needed."""
        if self.password_file is None:
            return self.password
        try:
            return Path(self.password_file).read_text("utf-8").strip()
        except OSError as error:
            limit = f"a file that can be read ({error.strerror})"
        except UnicodeDecodeError:
            limit = "a file of text in UTF-8"
        raise InvalidOption("passwordFile", self.password_file, limit)
