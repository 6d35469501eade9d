"""Celery with a task that takes its time and notes both ends: `enqueue`, or `work N SECONDS`."""

import os
import sys
import time

from celery_app import QUEUE, app
from work import events


@app.task(name="note")
def note(number):
    _note("began", number)
    time.sleep(SECONDS)
    _note("ended", number)


def _note(what, number):
    at = time.clock_gettime(time.CLOCK_BOOTTIME)
    with open(os.environ["BENCHMARK_NOTES"], "a") as file:
        file.write(f"{what} {number} {at:.6f}\n")


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        for event in events():
            note.delay(event["payload"]["number"])
    else:
        SECONDS = float(sys.argv[3])
        app.worker_main(
            [
                "worker", "--pool=threads", f"--concurrency={sys.argv[2]}", f"--queues={QUEUE}",
                "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING",
            ]
        )  # fmt: skip
