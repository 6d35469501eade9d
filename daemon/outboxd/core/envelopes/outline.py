"""The keys by which an envelope is recognised, whatever they hold."""

import msgspec

Key = msgspec.Raw | msgspec.UnsetType


class Outline(msgspec.Struct, frozen=True):
    """A JSON object as far as any decision needs it; a key that is not there is UNSET."""

    id: Key = msgspec.UNSET
    type: Key = msgspec.UNSET
    payload: Key = msgspec.UNSET
    aggregate_type: Key = msgspec.UNSET
    event_id: Key = msgspec.UNSET
    traceparent: Key = msgspec.UNSET
    source: Key = msgspec.UNSET
    specversion: Key = msgspec.UNSET
    detail: Key = msgspec.UNSET
    detail_type: Key = msgspec.field(default=msgspec.UNSET, name="detail-type")
    sns_type: Key = msgspec.field(default=msgspec.UNSET, name="Type")
    topic: Key = msgspec.field(default=msgspec.UNSET, name="TopicArn")


_outline = msgspec.json.Decoder(Outline)
_text = msgspec.json.Decoder(str)


def outline_of(text: str | msgspec.Raw) -> Outline | None:
    """The outline of a JSON object, None for any other JSON. Raises DecodeError if it is none."""
    try:
        return _outline.decode(text)
    except msgspec.ValidationError:
        return None


def text_of(key: Key) -> str | None:
    """The text that a key holds; None if it is missing or holds anything else."""
    if isinstance(key, msgspec.UnsetType):
        return None
    try:
        return _text.decode(key)
    except msgspec.ValidationError:
        return None


def present(*keys: Key) -> bool:
    """Whether all of the keys are there."""
    return not any(isinstance(key, msgspec.UnsetType) for key in keys)
