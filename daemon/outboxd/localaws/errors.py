"""Refusals, in the form in which AWS's SDKs recognise them."""

import msgspec

# The prefix AWS gives to refusals that no service model names.
CORAL = "com.amazon.coral.service"


class AwsError(Exception):
    """A call, or one entry of a batch, was refused.

    `shape` names the exception of the service model (botocore makes its typed exception from it),
    `code` the name that clients of the older query protocol know, which botocore reports as
    `Error.Code`.
    """

    def __init__(
        self,
        shape: str,
        message: str,
        *,
        code: str | None = None,
        status: int = 400,
        sender_fault: bool = True,
        namespace: str = CORAL,
    ) -> None:
        super().__init__(message)
        self.shape = shape
        self.message = message
        self.code = code or shape
        self.status = status
        self.sender_fault = sender_fault
        self.namespace = namespace

    @property
    def fault(self) -> str:
        return "Sender" if self.sender_fault else "Receiver"

    def body(self) -> bytes:
        """The JSON that carries this refusal."""
        return msgspec.json.encode(
            {"__type": f"{self.namespace}#{self.shape}", "message": self.message}
        )

    def query_error(self) -> str:
        """The value of `x-amzn-query-error`."""
        return f"{self.code};{self.fault}"


def unknown_operation(service: str, action: str) -> AwsError:
    return AwsError("UnknownOperationException", f"{service} has no operation {action!r}.")


def malformed(reason: str) -> AwsError:
    return AwsError("SerializationException", f"The request body cannot be read: {reason}")
