"""What a check makes of facts: for those that no test can stage on a real server, and for any."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.errors import OutageKind
from outboxd.core.live.database import connections_needed
from outboxd.core.live.facts import (
    Absent,
    Activity,
    AwsFacts,
    DatabaseFacts,
    Facts,
    Grant,
    Identity,
    Pooling,
    Refusal,
    Server,
    Table,
    Unanswered,
)
from outboxd.core.live.finding import Code, Severity, counts
from outboxd.core.live.grants import needed
from outboxd.core.live.policies import Admission, admission
from outboxd.core.live_findings import live_findings
from outboxd.core.settings import Settings

QUEUE = "arn:aws:sqs:us-east-1:111122223333:orders"
TOPIC = "arn:aws:sns:us-east-1:111122223333:order-topic"

CONFIGURATION = {
    "database": {"url": "postgresql://localhost/shop"},
    "relay": {"routes": [{"events": "*", "to": ["sns:order-topic"]}]},
    "destinations": {"sns": {"order-topic": {"subscriptions": [{"queue": "orders"}]}}},
    "queues": {
        "orders": {
            "concurrency": 8,
            "handlers": [{"event": "*", "handler": "shop:ship", "name": "ship"}],
        }
    },
}
SETTINGS = msgspec.convert(CONFIGURATION, Settings)

SERVER = Server(
    role="outboxd_daemon",
    database="shop",
    version="17.5",
    version_number=170_005,
    standby=False,
    settings={"max_connections": "100", "superuser_reserved_connections": "3"},
    role_limit=-1,
    database_limit=-1,
    superuser=False,
    others=0,
    ahead_seconds=0.0,
)
DATABASE = DatabaseFacts(
    server=SERVER,
    usage=True,
    pooling=Pooling.NONE,
    migrations=(),
    tables={},
    indexes=(),
    lacking=frozenset(),
    buckets=64,
    sequence_cache=1,
    wakes_relays=True,
    activity=Activity(old=(), all_visible=True),
    slots=(),
    direct=None,
)
IDENTITY = Identity("111122223333", "arn:aws:iam::111122223333:role/outboxd")


def of_server(**changed: object) -> set[Code]:
    server = msgspec.structs.replace(SERVER, **changed)
    facts = msgspec.structs.replace(DATABASE, server=server, tables=Unanswered("", "", OTHER))
    found = live_findings(SETTINGS, Facts(aws=None, database=facts))
    return {each.code for each in found} - {Code.NOT_LOOKED_AT}


OTHER = OutageKind.OTHER


def of_queue(settings: Settings = SETTINGS, **attributes: str) -> set[Code]:
    facts = AwsFacts(identity=IDENTITY, queues={"orders": {"QueueArn": QUEUE, **attributes}})
    return {each.code for each in live_findings(settings, Facts(aws=facts, database=None))}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),
        ({"standby": True}, {Code.SERVER_READ_ONLY}),
        ({"version_number": 130_012}, {Code.SERVER_OLD}),
        ({"ahead_seconds": -5.0}, {Code.DATABASE_CLOCK}),
        ({"ahead_seconds": 4.9}, set()),
        ({"role_limit": 14}, {Code.CONNECTIONS_TOO_FEW}),
        ({"role_limit": 15}, set()),
        ({"role_limit": 3, "superuser": True}, set()),
        ({"role_limit": 20, "others": 50}, set()),
        ({"others": 82}, set()),
        ({"others": 83}, {Code.CONNECTIONS_TIGHT}),
        ({"settings": {"max_connections": "100", "autovacuum": "off"}}, {Code.AUTOVACUUM_OFF}),
        (
            {"settings": {"max_connections": "99", "server_encoding": "LATIN1"}},
            {Code.SERVER_ENCODING},
        ),
        (
            {"settings": {"max_connections": "99", "idle_in_transaction_session_timeout": "29999"}},
            {Code.TIMEOUT_SHORT},
        ),
        ({"settings": {"max_connections": "99", "statement_timeout": "30000"}}, set()),
    ],
)
def test_a_server_that_does_not_fit(changed: dict[str, object], expected: set[Code]) -> None:
    assert of_server(**changed) == expected


def test_a_batch_is_one_connection() -> None:
    assert connections_needed(SETTINGS) == 5 + 2 + 8
    handler = msgspec.structs.replace(SETTINGS.queues["orders"].handlers[0], batch=4)
    queue = msgspec.structs.replace(SETTINGS.queues["orders"], handlers=(handler,), processes=3)
    batches = msgspec.structs.replace(SETTINGS, queues={"orders": queue})

    assert connections_needed(batches) == 5 + 2 + 3 * 2


def test_dead_rows_count_once_they_are_many_and_a_large_part() -> None:
    def of(live: int, dead: int) -> set[Code]:
        table = Table(
            kind="r", persistence="p", hides_rows=False, options={}, live_rows=live, dead_rows=dead
        )
        facts = msgspec.structs.replace(DATABASE, tables={"outbox_events": table})
        return {each.code for each in live_findings(SETTINGS, Facts(aws=None, database=facts))}

    assert Code.DEAD_ROWS in of(0, 100_001)
    assert Code.DEAD_ROWS not in of(0, 100_000)
    assert Code.DEAD_ROWS not in of(1_000_000, 150_000)


def test_a_queue_with_awss_own_key_gets_nothing_from_topics() -> None:
    assert Code.QUEUE_KEY in of_queue(KmsMasterKeyId="alias/aws/sqs")
    assert Code.QUEUE_KEY_UNTESTED not in of_queue(KmsMasterKeyId="alias/aws/sqs")
    assert Code.QUEUE_KEY_UNTESTED in of_queue(KmsMasterKeyId="alias/shop")


def test_marks_that_end_before_messages_do_are_told() -> None:
    def of(**inbox: object) -> set[Code]:
        settings = msgspec.convert({**CONFIGURATION, "inbox": inbox}, Settings)
        queues = {
            "orders": {"MessageRetentionPeriod": "345600"},
            "orders-dlq": {"MessageRetentionPeriod": "1209600"},
        }
        facts = AwsFacts(identity=IDENTITY, queues=queues)
        return {each.code for each in live_findings(settings, Facts(aws=facts, database=None))}

    assert Code.INBOX_STRETCHED in of(retention_days=17)
    assert Code.INBOX_SHORT in of(retention_days=17, allow_shorter_retention=True)
    assert not {Code.INBOX_STRETCHED, Code.INBOX_SHORT} & of(retention_days=18)


def test_a_clock_that_aws_would_refuse_is_told() -> None:
    facts = AwsFacts(identity=IDENTITY, ahead_seconds=-61.0)

    found = live_findings(SETTINGS, Facts(aws=facts, database=None))

    assert Code.AWS_CLOCK in {each.code for each in found}


def test_an_outage_is_one_finding_and_refusals_are_several() -> None:
    away = [Unanswered(f"queue {n}", f"reading {n}: away", OutageKind.UNREACHABLE) for n in "abc"]
    denied = [Unanswered(f"queue {n}", f"reading {n}: denied", OutageKind.DENIED) for n in "de"]
    facts = AwsFacts(identity=IDENTITY, unprobed=(*away, *denied))

    found = live_findings(SETTINGS, Facts(aws=facts, database=None))

    told = [each.found for each in found if each.code is Code.NOT_LOOKED_AT]
    assert told == [
        "reading a: away; so not asked either: queue b, queue c",
        "reading d: denied",
        "reading e: denied",
    ]


def test_the_worst_comes_first_and_warnings_count_when_asked_to() -> None:
    facts = AwsFacts(
        identity=IDENTITY,
        queues={"orders-dlq": Absent()},
        refusals=(Refusal("orders", "DeleteMessage"),),
    )

    found = live_findings(SETTINGS, Facts(aws=facts, database=None))

    assert [each.severity for each in found] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]
    assert counts(found[1:]).bad(strict=True)
    assert not counts(found[1:]).bad(strict=False)


def test_a_relay_alone_needs_no_right_on_the_inbox() -> None:
    alone = msgspec.structs.replace(SETTINGS, queues={})

    assert {grant.table for grant in needed(alone)} == {
        "_yoyo_migration",
        "outbox_events",
        "outbox_buckets",
        "outbox_relays",
    }
    assert Grant("processed_events", "INSERT") in needed(SETTINGS)


def allow(**more: object) -> dict[str, object]:
    return {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        **more,
    }


def when(operator: str, key: str, value: object) -> dict[str, object]:
    return {"Condition": {operator: {key: value}}}


PLAIN_HTTP = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Resource": "*",
    **when("Bool", "aws:SecureTransport", "false"),
}


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([], Admission.NO),
        ([allow()], Admission.YES),
        (allow(Action=["SQS:*"], Resource="*", Principal="*"), Admission.YES),
        ([allow(Principal={"AWS": "*"})], Admission.YES),
        ([allow(Principal={"Service": "events.amazonaws.com"})], Admission.NO),
        ([allow(Action="sqs:ReceiveMessage")], Admission.NO),
        ([allow(Resource=f"{QUEUE}-dlq")], Admission.NO),
        ([allow(**when("ArnEquals", "aws:SourceArn", [TOPIC, "x"]))], Admission.YES),
        (
            [allow(**when("ArnLike", "aws:SourceArn", "arn:aws:sns:*:111122223333:*"))],
            Admission.YES,
        ),
        ([allow(**when("ArnEquals", "aws:SourceArn", f"{TOPIC}2"))], Admission.NO),
        ([allow(**when("StringEquals", "aws:SourceArn", TOPIC))], Admission.YES),
        ([allow(**when("StringEquals", "aws:SourceArn", "arn:aws:sns:*"))], Admission.NO),
        ([allow(**when("StringEquals", "aws:SourceAccount", "111122223333"))], Admission.YES),
        ([allow(**when("StringEquals", "aws:SourceAccount", "999999999999"))], Admission.NO),
        ([allow(**when("StringEquals", "aws:PrincipalOrgID", "o-1"))], Admission.UNCLEAR),
        ([allow(), PLAIN_HTTP], Admission.YES),
        ([allow(), {**PLAIN_HTTP, "Condition": {}}], Admission.NO),
    ],
)
def test_a_policy_is_read_as_aws_reads_it(statements: object, expected: Admission) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})

    assert admission(policy, service="sns.amazonaws.com", source=TOPIC, queue=QUEUE) is expected


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Statement", "Effect", "Principal", "Action", "Condition", "Resource"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(anything)
def test_a_policy_of_any_form_is_read(document: object) -> None:
    admission(json.dumps(document), service="s", source=TOPIC, queue=QUEUE)


ATTRIBUTES = [
    "DelaySeconds",
    "MessageRetentionPeriod",
    "MaximumMessageSize",
    "RedrivePolicy",
    "RedriveAllowPolicy",
    "Policy",
    "QueueArn",
    "KmsMasterKeyId",
]


@given(
    st.dictionaries(
        st.sampled_from(ATTRIBUTES), st.text(max_size=8) | anything.map(json.dumps), max_size=8
    )
)
def test_queues_of_any_form_are_looked_at(attributes: dict[str, str]) -> None:
    facts = AwsFacts(identity=IDENTITY, queues={"orders": attributes, "orders-dlq": attributes})

    live_findings(SETTINGS, Facts(aws=facts, database=None))
