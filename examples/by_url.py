"""The same program with a broker of its own, and then against a server by its URL."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import penstock
from penstock import Context, Domain, Event, Topic

ASKED = Topic("asked", int)
ANSWERED = Topic("answered", int)
MATHS = Domain("maths")
PAPER = Domain("paper")


@MATHS.on(ASKED, order="strict")
async def square(event: Event[int], context: Context) -> None:
    context.publish(ANSWERED, event.payload**2)


@PAPER.on(ANSWERED, order="strict")
async def write(event: Event[int]) -> None:
    print("offset", event.offset, "is", event.payload)


async def program(target: str, *numbers: int) -> None:
    async with penstock.open(target) as broker:
        await broker.start(MATHS, PAPER)
        await broker.publish_many(ASKED, numbers)
        await broker.wait_until_settled(timeout_s=10)


def main(directory: Path) -> None:
    data, ready = directory / "data", directory / "ready.json"
    print("in the process")
    asyncio.run(program(str(data), 1, 2))
    serve = [sys.executable, "-m", "penstock.cli.main", "serve", "--data", str(data)]
    flags = [f"--no-{name}" for name in ("line", "json", "maze", "http", "mqtt")]
    flags += ["--native-port", "0"]
    command = [*serve, *flags, "--ready-file", str(ready)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        while not ready.exists() and server.poll() is None:
            time.sleep(0.01)
        port = json.loads(ready.read_text())["ports"]["native"]
        print("by URL, on the same files")
        asyncio.run(program(f"penstock://127.0.0.1:{port}", 3, 4))
        server.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
