"""Filter policies: which messages a subscription wants."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from outboxd.localaws.errors import AwsError
from outboxd.localaws.matching import values
from outboxd.localaws.matching.operators import PatternError
from outboxd.localaws.matching.pattern import OR, Pattern, compiled
from outboxd.localaws.sns.errors import filter_policy_invalid
from outboxd.localaws.sqs.message import AttributeValue

BY_ATTRIBUTES, BY_BODY = "MessageAttributes", "MessageBody"

# "Filter policy constraints", SNS Developer Guide.
MAX_KEYS = 5
MAX_COMBINATIONS = 150


class FilterPolicy(NamedTuple):
    """A checked policy with the part of a message that it looks at."""

    pattern: Pattern
    scope: str

    def accepts(self, body: str, attributes: Mapping[str, AttributeValue]) -> bool:
        """A body that is no JSON object passes no policy on bodies."""
        if self.scope == BY_ATTRIBUTES:
            return self.pattern.matches(dict(_attribute_values(attributes)))
        try:
            content = values.decoded(body)
        except ValueError:
            return False
        return isinstance(content, dict) and self.pattern.matches(content)


def parsed(text: str, scope: str) -> FilterPolicy | None:
    """None for no policy, which an empty text or an empty object says. Raises InvalidParameter."""
    if not text:
        return None
    try:
        content = values.decoded(text)
    except ValueError:
        raise filter_policy_invalid("failed to parse JSON.") from None
    if content == {}:
        return None
    try:
        pattern = compiled(content, numbers_as_written=False)
    except PatternError as error:
        raise filter_policy_invalid(f"{error}.") from None
    if scope == BY_ATTRIBUTES and _nested(pattern):
        raise filter_policy_invalid(
            "Filter policy scope MessageAttributes does not support nested filter policy"
        )
    _check_complexity(content)
    return FilterPolicy(pattern, scope)


def _nested(pattern: Pattern) -> bool:
    return any(isinstance(node, Pattern) for node in pattern.fields.values()) or any(
        _nested(each) for choice in pattern.choices for each in choice
    )


def _check_complexity(content: dict[str, Any]) -> None:
    if len(set(_keys(content))) > MAX_KEYS:
        raise _too_complex(f"it has more than {MAX_KEYS} keys")
    if _combinations(content, 1) > MAX_COMBINATIONS:
        raise _too_complex(f"it has more than {MAX_COMBINATIONS} combinations of values")


def _keys(content: dict[str, Any]) -> Iterator[str]:
    """The names of all fields that have values."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _keys(value)
        elif name == OR:
            for each in value:
                yield from _keys(each)
        else:
            yield name


def _combinations(content: dict[str, Any], depth: int) -> int:
    """A field counts the number of its values times the depth at which it lies; fields multiply,
    alternatives add up."""
    total = 1
    for name, value in content.items():
        if isinstance(value, dict):
            total *= _combinations(value, depth + 1)
        elif name == OR:
            total *= sum(_combinations(each, depth) for each in value)
        else:
            total *= len(value) * depth
    return total


def _too_complex(reason: str) -> AwsError:
    return filter_policy_invalid(f"Filter policy is too complex: {reason}")


def _attribute_values(attributes: Mapping[str, AttributeValue]) -> Iterator[tuple[str, Any]]:
    """Attributes as a policy sees them; it does not see binary ones."""
    for name, value in attributes.items():
        text = value.string_value or ""
        kind = value.data_type.partition(".")[0]
        if value.data_type == "String.Array":
            yield name, _array(text)
        elif kind == "String":
            yield name, text
        elif kind == "Number":
            yield name, values.number(text)


def _array(text: str) -> Any:
    try:
        return values.decoded(text)
    except ValueError:
        return text
