"""Measures the daemon's hot paths beside a floor: the least code that makes the same calls."""
