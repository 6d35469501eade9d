"""Writes the last results into README.md, so that nobody copies figures by hand."""

from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.report import Results, table

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def with_results(text: str, found: Results) -> str:
    """The text with these results between its two marks. Raises BenchmarkError without marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise BenchmarkError(f"the README has no {BEGIN} and {END} to write the results between")
    return f"{before}{BEGIN}\n```\n{table(found)}\n```\n{END}{after}"
