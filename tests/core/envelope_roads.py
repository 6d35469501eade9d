"""Bodies as each road makes them, after the documentation of AWS and of CloudEvents."""

import json
from collections.abc import Mapping
from typing import Any

from outboxd.core.messages import Attribute, ReceivedMessage

TOPIC = "arn:aws:sns:eu-west-1:123456789012:orders"
TIME = "2024-05-01T12:00:00Z"
SENT_AT = 1_714_564_800.0  # TIME, as the queue's clock says it

Json = dict[str, Any]


def message(
    body: str | Json, attributes: Mapping[str, str] | None = None, trace_header: str | None = None
) -> ReceivedMessage:
    return ReceivedMessage(
        message_id="m",
        receipt_handle="r",
        receive_count=1,
        sent_at=SENT_AT,
        body=body if isinstance(body, str) else json.dumps(body),
        attributes={k: Attribute("String", v) for k, v in (attributes or {}).items()},
        trace_header=trace_header,
    )


def event(identity: str, payload: Any = None, event_type: str = "order.paid") -> Json:
    return {
        "id": identity,
        "type": event_type,
        "aggregate_type": "order",
        "aggregate_id": "17",
        "occurred_at": TIME,
        "payload": payload,
    }


def job(identity: str, payload: Any = None) -> Json:
    return {"id": identity, "type": "order.paid", "payload": payload}


def sns(inner: str | Json, **changes: Any) -> Json:
    """What an SQS subscription without raw delivery gets."""
    return {
        "Type": "Notification",
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": TOPIC,
        "Message": inner if isinstance(inner, str) else json.dumps(inner),
        "Timestamp": "2024-05-01T12:00:01.000Z",
        "SignatureVersion": "1",
        "Signature": "c2ln",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/cert.pem",
        "UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
        "MessageAttributes": {"event_type": {"Type": "String", "Value": "order.paid"}},
        **changes,
    }


def eventbridge(detail: Any, detail_type: str = "order.paid", **changes: Any) -> Json:
    """What a rule's target gets."""
    return {
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": detail_type,
        "source": "shop.orders",
        "account": "123456789012",
        "time": TIME,
        "region": "eu-west-1",
        "resources": ["17"],
        "detail": detail,
        **changes,
    }


def cloudevent(identity: str, data: Any = None, **changes: Any) -> Json:
    return {
        "specversion": "1.0",
        "id": identity,
        "source": "/shop/orders",
        "type": "order.paid",
        "subject": "17",
        "time": TIME,
        "datacontenttype": "application/json",
        "aggregatetype": "order",
        "data": data,
        **changes,
    }
