"""The floors: the least code that makes the same calls, without any of the daemon's guarantees."""
