"""A strict, fast, in-memory stand-in for AWS over HTTP: SQS now, for the demo, tests and users.

Time is a clock that can be moved (`clock.py`); nothing is stored on disk and no credential is
checked. `server.py` is the way in, `sqs/` holds the queues.
"""
