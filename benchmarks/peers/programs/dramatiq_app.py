"""dramatiq: a producer; the worker is dramatiq's own command, given this module."""

import dramatiq
from dramatiq_sqs import SQSBroker
from work import HOLD_SECONDS, QUEUE, events

broker = SQSBroker(visibility_timeout=600)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name=QUEUE)
def ignore(event):
    pass


if __name__ == "__main__":
    for event in events():
        broker.enqueue(ignore.message(event), delay=HOLD_SECONDS * 1000)
