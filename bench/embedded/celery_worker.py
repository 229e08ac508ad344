"""Celery: a worker beside a Redis server, its tasks published and handled.

The backlog is a list of messages as Celery writes them, made under another name and
renamed to the queue when the clock starts: the worker is up by then, and waits.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from redis import Redis

from bench.embedded.player import Player, Watch
from bench.peers import redis
from bench.peers.processes import Missing, Server, spawn
from bench.rounds import Sample, payloads

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = "PENSTOCK_BENCH_REDIS_PORT"
QUEUE, BACKLOG, UNACKED = "work", "backlog", "unacked"
LOOK_S = 0.005
FILL_EVENTS = 1000
POOLS = {
    "prefork": ["--pool", "prefork", "--concurrency", "2"],
    "threads": ["--pool", "threads", "--concurrency", "4"],
    "solo": ["--pool", "solo"],
}


def start(folder: Path, variant: str) -> Server:
    """A Redis server and a worker; the variant is the worker's pool."""
    pool, _, sync = variant.partition(" ")
    server = redis.start_either(folder, sync or "everysec")
    port = server.place.ports["redis"]
    program = Path(sys.executable).with_name("celery")
    if not program.exists():
        server.stop()
        raise Missing("celery is not installed beside this Python (extra: bench)")
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    command: list[str | Path] = [program, "-A", "bench.embedded.celery_app", "worker"]
    environment = {"PYTHONPATH": str(ROOT), ENVIRONMENT: str(port)}
    try:
        worker = spawn(
            [*command, "--loglevel", "ERROR", *quiet, *POOLS[pool]],
            folder,
            lambda: _waits(port),
            environment,
        )
    except BaseException:
        server.stop()
        raise
    server.processes.insert(0, worker)
    server.place.pids.append(worker.pid)
    return server


def _waits(port: int) -> bool:
    """Whether somebody is blocked in a read of the queue."""
    with Redis(port=port) as client:
        info: Any = client.info("clients")
        return bool(info["blocked_clients"])


class Publish(Player):
    """``delay`` in as many threads as there are publishers."""

    def prepare(self) -> None:
        os.environ[ENVIRONMENT] = str(self.task.place.ports["redis"])

    def play(self) -> Sample:
        from bench.embedded.celery_app import app, handle

        publishers = self.task.publishers
        app.conf.broker_pool_limit = publishers
        texts = [
            payload.decode()
            for payload in payloads(self.task.events, self.task.payload_bytes)
        ]
        with ThreadPoolExecutor(publishers) as pool:
            list(pool.map(handle.delay, texts[:publishers]))
            watch = Watch(self.task)
            list(pool.map(handle.delay, texts))
            sample = watch.stop()
        with Redis(port=self.task.place.ports["redis"]) as client:
            client.delete(QUEUE)
        return sample


class Handle(Player):
    def prepare(self) -> None:
        os.environ[ENVIRONMENT] = str(self.task.place.ports["redis"])
        from bench.embedded.celery_app import handle

        handle.apply_async(["." * self.task.payload_bytes], queue="model")
        self._client = Redis(port=self.task.place.ports["redis"])
        model: Any = self._client.lpop("model")
        self._model = json.loads(model)

    def play(self) -> Sample:
        client = self._client
        for first in range(0, self.task.events, FILL_EVENTS):
            count = min(FILL_EVENTS, self.task.events - first)
            client.lpush(BACKLOG, *(self._message() for _ in range(count)))
        watch = Watch(self.task)
        client.rename(BACKLOG, QUEUE)
        while client.llen(QUEUE) or client.hlen(UNACKED):
            time.sleep(LOOK_S)
        return watch.stop()

    def _message(self) -> str:
        message = self._model
        id_ = str(uuid.uuid4())
        headers = {**message["headers"], "id": id_, "root_id": id_}
        properties = {
            **message["properties"],
            "correlation_id": id_,
            "delivery_tag": str(uuid.uuid4()),
        }
        return json.dumps({**message, "headers": headers, "properties": properties})
