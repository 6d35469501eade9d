"""What ends a run of the benchmarks."""


class BenchmarkError(Exception):
    """Says what did not happen, so that no number of this run means anything."""
