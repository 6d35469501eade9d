"""What a handler's own metrics may be called, carry and count."""

import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import SupportsFloat

from outboxd.core.errors import MetricRefused

MAX_METRICS = 100
"""Names, for each process."""
MAX_LABEL_SETS = 500
"""For each name and process; what all processes have together the supervisor bounds again."""
MAX_NAME_LENGTH = 100
MAX_LABELS = 10
MAX_VALUE_LENGTH = 128
MAX_BUCKETS = 40
MAX_TEXT_LENGTH = 500

DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_LABEL = re.compile(r"[a-z][a-z0-9_]*\Z")
_OURS = ("outboxd_", "process_", "python_", "scrape_")
_SUFFIXES = ("_total", "_bucket", "_sum", "_count", "_created", "_info")
_LABELS_OF_PROMETHEUS = {"le", "quantile"}


class Why(StrEnum):
    """Why something was refused; a closed set, so that it may be a metric's label."""

    NAME = "name"
    LABELS = "labels"
    VALUE = "value"
    DECLARATION = "declaration"
    TOO_MANY = "too_many"


class Refusal(MetricRefused):
    """Says which use of which metric is refused, and what to change."""

    def __init__(self, why: Why, metric: str, text: str) -> None:
        self.why = why
        self.metric = metric
        super().__init__(f"metric {metric[:MAX_NAME_LENGTH]!r} {text}")


def check_name(name: str, *, counter: bool) -> str:
    """The name as Prometheus will know the family. Raises Refusal."""
    bare = name.removesuffix("_total") if counter else name
    if len(bare) > MAX_NAME_LENGTH or not _NAME.match(bare):
        raise Refusal(
            Why.NAME,
            name,
            f"needs a name of small letters, digits and underscores, at most {MAX_NAME_LENGTH}",
        )
    if bare.startswith(_OURS):
        raise Refusal(
            Why.NAME, name, f"begins with {' or '.join(_OURS)}, which are not for handlers"
        )
    if bare.endswith(_SUFFIXES):
        raise Refusal(
            Why.NAME, name, f"ends with one of {', '.join(_SUFFIXES)}, which Prometheus gives"
        )
    return bare


def check_labels(name: str, labels: Mapping[str, str | int]) -> tuple[tuple[str, str], ...]:
    """The labels in the order of their names, as text. Raises Refusal."""
    if len(labels) > MAX_LABELS:
        raise Refusal(Why.LABELS, name, f"has more than {MAX_LABELS} labels")
    return tuple(sorted((label, _label(name, label, value)) for label, value in labels.items()))


def _label(name: str, label: str, value: object) -> str:
    if not _LABEL.match(label) or label in _LABELS_OF_PROMETHEUS:
        raise Refusal(
            Why.LABELS, name, f"has a label {label[:MAX_NAME_LENGTH]!r}: use small letters, "
            "digits and underscores, and neither `le` nor `quantile`"
        )  # fmt: skip
    if not isinstance(value, str | int):
        raise Refusal(
            Why.LABELS, name, f"has a {type(value).__name__} for the label {label}: give it a str"
        )
    text = str.__str__(value) if isinstance(value, str) else str(value)
    if len(text) > MAX_VALUE_LENGTH or not _encodable(text):
        raise Refusal(
            Why.LABELS, name, f"has a value for the label {label} that is no Unicode text of at "
            f"most {MAX_VALUE_LENGTH} characters"
        )  # fmt: skip
    return text


def _encodable(text: str) -> bool:
    """Lone surrogates could not leave the process, and would take all other metrics along."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(name: str, text: str) -> str:
    """The help text; a metric without one gets its name."""
    return str(text)[:MAX_TEXT_LENGTH].encode(errors="replace").decode() or name


def check_number(name: str, value: object, *, smallest: float = -math.inf) -> float:
    """The value as a float. Raises Refusal for what is no finite number, or is too small."""
    try:
        # First what is common: asking for a protocol costs more than all the rest.
        if isinstance(value, int | float):
            number = float(value)
        else:
            number = float(value) if isinstance(value, SupportsFloat) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise Refusal(Why.VALUE, name, "is given a value that is no finite number")
    if number < smallest:
        raise Refusal(Why.VALUE, name, "is a counter, and those only grow: use a gauge")
    return number


def check_buckets(name: str, buckets: Sequence[float]) -> tuple[float, ...]:
    """The upper bounds of a histogram's buckets. Raises Refusal."""
    bounds = tuple(check_number(name, bound) for bound in buckets) or DURATION_BUCKETS
    if len(bounds) > MAX_BUCKETS or list(bounds) != sorted(set(bounds)):
        raise Refusal(
            Why.DECLARATION, name, f"needs at most {MAX_BUCKETS} buckets, each above the one before"
        )
    return bounds
