"""sqs-workers: `enqueue`, or two processes that do one of the jobs below."""

import os
import sys

import psycopg
from sqs_workers import SQSEnv
from sqs_workers.batching import BatchMessages, NoBatching
from work import DSN, HOLD_SECONDS, QUEUE, events

JOB = "work"

MARK = """
    INSERT INTO outboxd.processed_events (event_id, handler) VALUES (%s, 'effect')
    ON CONFLICT DO NOTHING
"""
EFFECT = "INSERT INTO public.effects (event_id, number) VALUES (%s, %s)"

MARKS = """
    INSERT INTO outboxd.processed_events (event_id, handler)
    SELECT id, 'effect' FROM unnest(%s::uuid[]) id
    ON CONFLICT DO NOTHING
    RETURNING event_id
"""
EFFECTS = """
    INSERT INTO public.effects (event_id, number)
    SELECT * FROM unnest(%s::uuid[], %s::integer[])
"""

connection = None


def database():
    global connection
    if connection is None:  # each process has its own
        connection = psycopg.connect(DSN, autocommit=True)
    return connection


def ignore(event):
    pass


def ignore_batch(jobs):
    pass


def effect(event):
    with database().transaction():
        if database().execute(MARK, [event["id"]]).rowcount:
            database().execute(EFFECT, [event["id"], event["payload"]["number"]])


def effect_batch(jobs):
    found = {job["event"]["id"]: job["event"]["payload"]["number"] for job in jobs}
    with database().transaction():
        new = [str(id_) for (id_,) in database().execute(MARKS, [[*found]]).fetchall()]
        database().execute(EFFECTS, [new, [found[id_] for id_ in new]])


def enqueue():
    queue = SQSEnv(codec="json").queue(QUEUE)
    with queue.add_batch():
        for event in events():
            queue.add_job(JOB, _delay_seconds=HOLD_SECONDS, event=event)


def work(name):
    os.fork()
    batching = BatchMessages(10) if name.endswith("_batch") else NoBatching()
    queue = SQSEnv(codec="json").queue(QUEUE, batching_policy=batching)
    queue.connect_processor(JOB, globals()[name])
    queue.process_queue(wait_second=10)


if __name__ == "__main__":
    enqueue() if sys.argv[1] == "enqueue" else work(sys.argv[1])
