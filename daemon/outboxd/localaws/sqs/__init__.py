"""SQS: an in-memory engine (`queue.py`, `standard.py`, `fifo.py`) behind its JSON protocol."""
