"""What a target is sent: the event, a part of it, a constant, or a text made from parts of it."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from outboxd.localaws.events import paths
from outboxd.localaws.events.bus import Rule
from outboxd.localaws.events.errors import validation
from outboxd.localaws.events.event import Event
from outboxd.localaws.events.requests import InputTransformer, Target
from outboxd.localaws.matching import values

MAX_INPUT_PATHS = 100

_VARIABLE = re.compile(r"<([A-Za-z0-9_.-]+)>")
_RULE_ARN = "aws.events.rule-arn"
_RULE_NAME = "aws.events.rule-name"
_INGESTION_TIME = "aws.events.event.ingestion-time"
_WHOLE = "aws.events.event.json"
_WITHOUT_DETAIL = "aws.events.event"
_KNOWN = frozenset({_RULE_ARN, _RULE_NAME, _INGESTION_TIME, _WHOLE, _WITHOUT_DETAIL})


def check(target: Target) -> None:
    """Raises ValidationException."""
    given = [target.input, target.input_path, target.input_transformer]
    if sum(each is not None for each in given) > 1:
        raise validation(
            "Only one of Input, InputPath, or InputTransformer must be provided for target "
            f"{target.id}."
        )
    if target.input is not None:
        _check_json(target.input, target.id)
    if target.input_path:
        _check_path(target.input_path, target.id)
    if target.input_transformer is not None:
        _check_transformer(target.input_transformer, target.id)


def input_of(target: Target, rule: Rule, event: Event) -> str:
    """The body of the message to the target."""
    if target.input is not None:
        return target.input
    if target.input_path:
        return _text(_part(target.input_path, event))
    if target.input_transformer is not None:
        return _transformed(target.input_transformer, rule, event)
    return event.text


def _transformed(transformer: InputTransformer, rule: Rule, event: Event) -> str:
    variables = _reserved(rule, event)
    for name, path in transformer.input_paths_map.items():
        variables[name] = _part(path, event)
    template = transformer.input_template
    pieces: list[str] = []
    position = 0
    quoted = False
    for variable in _VARIABLE.finditer(template):
        between = template[position : variable.start()]
        quoted ^= _quotes(between) % 2 == 1
        pieces.append(between)
        pieces.append(_inserted(variables[variable[1]], quoted=quoted))
        position = variable.end()
    pieces.append(template[position:])
    return "".join(pieces)


def _reserved(rule: Rule, event: Event) -> dict[str, Any]:
    without_detail = {name: value for name, value in event.content.items() if name != "detail"}
    return {
        _RULE_ARN: rule.arn,
        _RULE_NAME: rule.name,
        _INGESTION_TIME: event.ingested_at,
        _WHOLE: event.content,
        _WITHOUT_DETAIL: without_detail,
    }


def _part(path: str, event: Event) -> Any:
    """The JSON value at a checked path."""
    return paths.found(paths.parsed(path) or (), event.content)


def _inserted(value: Any, *, quoted: bool) -> str:
    """Within the quotes of a template a value is text, elsewhere it is JSON."""
    if not quoted:
        return _text(value)
    if value is paths.NOTHING:
        return ""
    text = value if isinstance(value, str) else values.encoded(value)
    return msgspec.json.encode(text).decode()[1:-1]


def _text(value: Any) -> str:
    return "null" if value is paths.NOTHING else values.encoded(value)


def _quotes(text: str) -> int:
    return len(re.findall(r'(?<!\\)(?:\\\\)*"', text))


def _check_json(text: str, target_id: str) -> None:
    try:
        values.decoded(text)
    except ValueError as error:
        raise validation(f"JSON syntax error in input for target {target_id}: {error}") from None


def _check_path(path: str, target_id: str) -> None:
    if paths.parsed(path) is None:
        raise validation(f"Invalid InputPath for target {target_id} : [{path}].")


def _check_transformer(transformer: InputTransformer, target_id: str) -> None:
    defined: Mapping[str, str] = transformer.input_paths_map
    if len(defined) > MAX_INPUT_PATHS:
        raise validation(f"InputPathsMap of target {target_id} has over {MAX_INPUT_PATHS} entries.")
    if not transformer.input_template:
        raise validation(f"InputTemplate for target {target_id} is empty.")
    for name, path in defined.items():
        if name.lower().startswith("aws"):
            raise validation(f"InputPathsMap of target {target_id} must not define {name}.")
        _check_path(path, target_id)
    for name in _VARIABLE.findall(transformer.input_template):
        if name not in defined and name not in _KNOWN:
            raise validation(
                f"InputTemplate for target {target_id} contains invalid placeholder {name}."
            )
