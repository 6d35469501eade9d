"""The script of faults: what may be asked for, when it takes hold, and what it does to a call."""
