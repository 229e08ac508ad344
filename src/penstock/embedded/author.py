"""Who gives an order at the desk, where a program does not say."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping

# The desk is what fills the list of verbs.
from penstock.desk import desk as _desk  # noqa: F401
from penstock.desk.verbs import BY, SIGNED


def author(name: str) -> str:
    """The name of the program, or else the user of this machine that runs it."""
    if name:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def signed(verb: str, arguments: Mapping[str, object], by: str) -> Mapping[str, object]:
    """The arguments of an order with who gives it, if it is written down."""
    if arguments.get(BY) or verb not in SIGNED:
        return arguments
    return {**arguments, BY: by}
