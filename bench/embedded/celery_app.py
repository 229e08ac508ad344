"""The Celery application of the comparison, in its worker and in its publisher.

Acknowledged after the task (``acks_late``), no results, no events, no rate limits, and
as much prefetched as its manual advises for short tasks.
"""

from __future__ import annotations

import os

from celery import Celery

from bench.embedded.celery_worker import ENVIRONMENT, QUEUE

PREFETCH = 128

app = Celery("bench", broker=f"redis://127.0.0.1:{os.environ[ENVIRONMENT]}")
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    task_default_queue=QUEUE,
    worker_prefetch_multiplier=PREFETCH,
    worker_disable_rate_limits=True,
    broker_connection_retry_on_startup=True,
)


@app.task
def handle(payload: str) -> None:
    pass
