"""The admin token of a server of our own, for commands that name its port.

Whoever may read the token file is its owner; the commands show the token to that
owner's server and to nobody else. Another account may have taken the port while the
server was away, so first the system is asked who listens there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from penstock.client.address import Remote, is_loopback
from penstock.errors import BadTokenFile
from penstock.http.key_file import KeyFile

# What the system says of sockets: one line each, with the account that has it.
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENS = "0A"
ROOT = 0


def own_token(where: Remote, directory: str) -> str | None:
    """The admin token of the directory, if nobody else can listen at that port.

    None if the port is not on this machine, or the token is not ours to read.
    """
    if not is_loopback(where.host):
        return None
    file = KeyFile(directory)
    try:
        token, owner = file.admin_token(), file.admin_path.stat().st_uid
    except (OSError, BadTokenFile):
        return None
    listening = set(listeners(where.port))
    trusted = listening and listening <= {ROOT, os.getuid(), owner}
    return token if trusted else None


def listeners(port: int) -> Iterator[int]:
    """The accounts that listen at a port, at whichever address of this machine.

    A line: number, local address:port, remote address:port, state, queues, timer,
    retransmits, account, …; addresses and ports in hexadecimal.
    """
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, _, _, _, uid, *_ = line.split()
            if state == LISTENS and int(local.rpartition(":")[2], 16) == port:
                yield int(uid)
