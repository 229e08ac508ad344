"""What the web application sends, after it has answered."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from penstock import Domain, Event, Topic

DATA = Path(os.environ.get("OUTBOX_DATA", "outbox-data"))
MAILS = DATA.with_name(f"{DATA.name}-mails")


class Order(BaseModel):
    customer: Annotated[str, Field(min_length=1)]
    item: str
    count: Annotated[int, Field(ge=1)] = 1


ORDERS = Topic("orders", Order)
MAIL = Domain("mail")


@MAIL.on(ORDERS, backoff_s=0.1)
def confirm(event: Event[Order]) -> None:
    """Send a mail; here a file. Sent twice, the second replaces the first."""
    order = event.payload
    MAILS.mkdir(exist_ok=True)
    text = f"Dear {order.customer}, {order.count} x {order.item} will come.\n"
    (MAILS / f"{event.id}.txt").write_text(text)
