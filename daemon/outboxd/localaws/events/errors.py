"""The refusals of EventBridge, with the names and mostly the words of AWS."""

from outboxd.localaws.errors import AwsError


def validation(message: str) -> AwsError:
    return AwsError("ValidationException", message)


def constraint(value: object, member: str, rule: str) -> AwsError:
    """A member that is not as the service model says; `rule` starts with "Member must"."""
    return validation(
        f"1 validation error detected: Value '{value}' at '{member}' failed to satisfy "
        f"constraint: {rule}"
    )


def bus_not_found(name: str) -> AwsError:
    return AwsError("ResourceNotFoundException", f"Event bus {name} does not exist.")


def bus_exists(name: str) -> AwsError:
    return AwsError("ResourceAlreadyExistsException", f"Event bus {name} already exists.")


def rule_not_found(rule: str, bus: str) -> AwsError:
    message = f"Rule {rule} does not exist on EventBus {bus}."
    return AwsError("ResourceNotFoundException", message)


def invalid_pattern(reason: str) -> AwsError:
    return AwsError("InvalidEventPatternException", f"Event pattern is not valid. Reason: {reason}")


def limit_exceeded() -> AwsError:
    message = "The requested resource exceeds the maximum number allowed."
    return AwsError("LimitExceededException", message)


def unsupported(message: str) -> AwsError:
    """AWS can do this, localaws cannot."""
    return AwsError("UnsupportedOperation", f"localaws {message}")
