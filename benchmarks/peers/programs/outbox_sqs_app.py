"""outbox-sqs: `insert` makes its table and fills it, `relay` publishes what is in it."""

import signal
import sys

import boto3
import psycopg
from outbox_sqs import Base, Relay, SQSPublisher, save
from sqlalchemy import create_engine, text
from sqlalchemy.orm import sessionmaker
from work import DSN, QUEUE, events

BATCH = 100

engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(DSN))
sessions = sessionmaker(bind=engine, expire_on_commit=False)
client = boto3.client("sqs")


def insert():
    url = client.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    Base.metadata.create_all(engine)
    with sessions() as session:
        for event in events():
            headers = {"event_type": event["type"], "aggregate_id": event["aggregate_id"]}
            save(session, url, event, headers=headers)
        session.commit()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE outbox_events"))


def relay():
    one = Relay(sessions, SQSPublisher(client), batch_size=BATCH)
    while one.run_once():
        pass
    signal.pause()


if __name__ == "__main__":
    insert() if sys.argv[1] == "insert" else relay()
