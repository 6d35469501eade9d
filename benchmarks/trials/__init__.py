"""Benchmarks that are no work to be got through: delays, recoveries, idling, starting."""
