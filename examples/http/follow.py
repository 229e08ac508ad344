"""Follow a topic with the standard library alone, over a connection that breaks.

The id of a server-sent event is its offset: whoever says the last one it has seen goes
on behind it. Needs URL and TOKEN in the environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from urllib.request import Request, urlopen

URL = os.environ["URL"] + "/v1/topics/orders"
HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}"}


def publish(*items: str) -> None:
    """Lines of events; the answer comes when all of them are on disk."""
    lines = "".join(json.dumps({"payload": {"item": item}}) + "\n" for item in items)
    headers = {**HEADERS, "Content-Type": "application/x-ndjson"}
    with urlopen(Request(f"{URL}/events", lines.encode(), headers)) as answer:
        for line in answer:
            print("stored at", json.loads(line)["offset"])


def follow(last: str | None) -> Iterator[tuple[str, str]]:
    """Id and item of every event behind the last one that was seen."""
    headers = dict(HEADERS) if last is None else {**HEADERS, "Last-Event-ID": last}
    id_ = ""
    with urlopen(Request(f"{URL}/stream?start=earliest", headers=headers)) as stream:
        for line in stream:
            name, _, value = line.decode().strip().partition(": ")
            if name == "id":
                id_ = value
            elif name == "data":
                yield id_, json.loads(value)["payload"]["item"]


def main() -> None:
    publish("tea", "milk", "cake", "jam")
    last = None
    for connection in ("first", "second"):
        for count, (id_, item) in enumerate(follow(last), 1):
            print(f"{connection} connection: {id_} {item}")
            last = id_
            if count == 2:
                break  # the connection is gone, as if the network had failed


if __name__ == "__main__":
    main()
