"""What each action of SQS does; `table.py` lists them all."""
