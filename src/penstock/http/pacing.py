"""Waiting over HTTP: a user who publishes faster than it may is answered later."""

from __future__ import annotations

import asyncio

from penstock.access.account import Account

# Time is told in milliseconds.
LEAST_S = 0.001


async def paced(account: Account | None, most_s: float | None = None) -> None:
    """Return when the user may publish; raises QuotaReached after ``most_s``.

    At once, if it would take longer: no user waits in vain.
    """
    if account is None or not account.paced or not account.wait_s():
        return
    loop = asyncio.get_running_loop()
    until_s = None if most_s is None else loop.time() + most_s
    account.waits()
    while wait_s := account.wait_s():
        if until_s is not None and loop.time() + wait_s > until_s:
            raise account.too_fast()
        await asyncio.sleep(max(wait_s, LEAST_S))
