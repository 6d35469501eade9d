"""Celery: `enqueue`, or a worker with `threads N` or `prefork N`."""

import sys

import boto3
from celery import Celery
from work import QUEUE, REGION, events

URL = boto3.client("sqs").get_queue_url(QueueName=QUEUE)["QueueUrl"]

app = Celery("peer", broker="sqs://test:test@", set_as_current=True)
app.conf.update(
    broker_transport_options={
        "region": REGION,
        "predefined_queues": {QUEUE: {"url": URL}},
        "wait_time_seconds": 10,
        "polling_interval": 0,
        "visibility_timeout": 30,
    },
    task_default_queue=QUEUE,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=10,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
)


@app.task(name="ignore")
def ignore(event):
    pass


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        for event in events():
            ignore.delay(event)
    else:
        pool, concurrency = sys.argv[1:]
        app.worker_main(
            [
                "worker", f"--pool={pool}", f"--concurrency={concurrency}", f"--queues={QUEUE}",
                "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING",
            ]
        )  # fmt: skip
