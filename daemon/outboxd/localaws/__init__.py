"""A strict, fast, in-memory stand-in for AWS over HTTP, for the demo, tests and users.

SQS, with SNS and EventBridge as far as they deliver to queues. Time is a clock that can be moved
(`clock.py`); nothing is stored on disk and no credential and no policy is checked. `server.py` is
the way in, `sqs/` holds the queues.
"""
