"""taskiq: a producer; the worker is taskiq's own command, given this module."""

import asyncio

from taskiq_aio_sqs import SQSBroker
from work import ENDPOINT, QUEUE, REGION, events

AT_ONCE = 20

broker = SQSBroker(
    QUEUE,
    endpoint_url=ENDPOINT,
    region_name=REGION,
    aws_access_key_id="test",
    aws_secret_access_key="test",
    wait_time_seconds=10,
    max_number_of_messages=10,
)


@broker.task(task_name="ignore")
async def ignore(event):
    pass


async def enqueue():
    await broker.startup()
    places = asyncio.Semaphore(AT_ONCE)

    async def send(event):
        async with places:
            await ignore.kiq(event)

    await asyncio.gather(*(send(event) for event in events()))
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(enqueue())
