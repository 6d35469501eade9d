"""Settings that cannot work together are refused, with what would go wrong."""

from typing import Any, TypeVar

import msgspec
import pytest

from outboxd.core.settings import (
    AwsSettings,
    BackoffSettings,
    DatabaseSettings,
    HandlerSettings,
    QueueSettings,
    RelaySettings,
    RouteSettings,
    Settings,
    SupervisorSettings,
)
from outboxd.core.settings_rules import broken_rules

S = TypeVar("S", bound=msgspec.Struct)

HANDLER = HandlerSettings(event="order.*", handler="shop:ship", name="shop.ship")
BATCHED = HandlerSettings(event="order.*", handler="shop:count", name="shop.count", batch=10)
QUEUE = QueueSettings(handlers=(HANDLER,))
ROUTE = RouteSettings(events="*", to=("sqs:orders",))
RELAY = RelaySettings(routes=(ROUTE,))
GOOD = Settings(
    database=DatabaseSettings(url="postgresql://localhost/shop"),
    relay=RELAY,
    queues={"orders": QUEUE},
)


def changed(section: S, **settings: Any) -> S:
    return msgspec.structs.replace(section, **settings)


def with_queue(**settings: Any) -> Settings:
    return changed(GOOD, queues={"orders": changed(QUEUE, **settings)})


def with_relay(**settings: Any) -> Settings:
    return changed(GOOD, relay=changed(RELAY, **settings))


def with_supervisor(**settings: Any) -> Settings:
    return changed(GOOD, supervisor=SupervisorSettings(**settings))


def with_aws(**settings: Any) -> Settings:
    return changed(GOOD, aws=AwsSettings(**settings))


def with_url(url: str) -> Settings:
    return changed(GOOD, database=DatabaseSettings(url=url))


def with_handler(**settings: Any) -> Settings:
    return with_queue(handlers=(changed(HANDLER, **settings),))


def fifo_table(**settings: Any) -> Settings:
    """A table whose own name is that of a FIFO queue, and a route to it."""
    return changed(
        with_relay(routes=(changed(ROUTE, to=("sqs:orders.fifo",)),)),
        queues={"orders.fifo": changed(QUEUE, **settings)},
    )


def two_queues(first: dict[str, Any], second: dict[str, Any]) -> Settings:
    other = changed(HANDLER, name="shop.other")
    return changed(
        GOOD,
        queues={
            "orders": changed(QUEUE, **first),
            "payments": changed(changed(QUEUE, handlers=(other,)), **second),
        },
    )


def routed_to(*destinations: str) -> Settings:
    return with_relay(routes=(changed(ROUTE, to=destinations),))


def test_the_defaults_go_together() -> None:
    assert broken_rules(GOOD) == []


@pytest.mark.parametrize(
    "settings",
    [
        with_queue(visibility_seconds=5),
        with_queue(wait_seconds=15),
        with_queue(max_attempts=25),
        with_queue(retention_days=14.0),
        with_queue(dead_letter="letters"),
        with_queue(queue_name="orders.fifo", dead_letter="letters.fifo"),
        with_queue(queue_name="q" * 71 + ".fifo"),
        # A dead letter of a FIFO queue is as old as its stay there.
        with_queue(queue_name="orders.fifo", retention_days=14.0, dead_letter_retention_days=1.0),
        with_handler(backoff=BackoffSettings(first_seconds=0.1, cap_seconds=0.2)),
        with_handler(backoff=BackoffSettings(cap_seconds=1, delays_seconds=(1, 60))),
        with_queue(handlers=(BATCHED,)),
        with_queue(handlers=(changed(BATCHED, inbox="off"), changed(HANDLER, event="payment.*"))),
        with_queue(
            queue_name="orders.fifo",
            handlers=(changed(BATCHED, batch=1, inbox="own"), changed(HANDLER, event="order.paid")),
        ),
        with_relay(renew_seconds=3.75),
        with_url("postgres://user:p%40ss@db1:5432,db2/shop?sslmode=require"),
        with_url("host=db dbname=shop password='a b'"),
        with_aws(endpoint_url="http://127.0.0.1:4566"),
        with_aws(endpoint_url="http://[::1]:4566"),
        with_aws(endpoint_url="https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/"),
        two_queues({"dead_letter": "letters"}, {"dead_letter": "letters"}),
        # A pool of its own for the dead letters of another queue.
        two_queues(
            {"dead_letter": "payments", "dead_letter_retention_days": 9}, {"retention_days": 9}
        ),
        changed(GOOD, relay=None),
        changed(
            GOOD,
            relay=None,
            database=None,
            queues={"orders": changed(QUEUE, handlers=(changed(HANDLER, inbox="off"),))},
        ),
        changed(GOOD, relay=None, supervisor=SupervisorSettings(grace_seconds=20)),
    ],
)
def test_what_works_is_allowed(settings: Settings) -> None:
    assert broken_rules(settings) == []


@pytest.mark.parametrize(
    ("settings", "where", "why"),
    [
        (Settings(), "neither [relay] nor [queues]", "nothing to do"),
        (changed(GOOD, database=None), "[database]: missing", "relay reads its events"),
        (
            changed(GOOD, database=None, relay=None),
            "[database]: missing",
            "handler [queues.orders] 'shop.ship' keeps its inbox there",
        ),
        (
            changed(
                GOOD,
                database=DatabaseSettings(
                    url="postgresql://h/d", direct_url="postgresql+psycopg://h/d"
                ),
            ),
            "[database] direct_url:",
            "SQLAlchemy",
        ),
        (with_url("localhost:5432/shop"), "[database] url:", "expected postgresql://"),
        (with_url("mysql://localhost/shop"), "[database] url:", "expected postgresql://"),
        (with_url("postgresql+psycopg://h/d"), "[database] url:", "SQLAlchemy"),
        (with_url("postgresql://u:p@ss@h/d"), "[database] url:", "%40"),
        (with_url("postgresql://u:p/ss@h/d"), "[database] url:", "%2F"),
        (with_aws(endpoint_url="localhost:4566"), "[aws] endpoint_url:", "http://"),
        (with_aws(endpoint_url="http://local_aws:4566"), "[aws] endpoint_url:", "hyphens and dots"),
        (with_aws(endpoint_url="http://local aws"), "[aws] endpoint_url:", "hyphens and dots"),
        (with_aws(endpoint_url="http://aws:port"), "[aws] endpoint_url:", "http://host:port"),
        (
            with_supervisor(grace_seconds=5, escalation_seconds=5),
            "[supervisor] escalation_seconds:",
            "nothing is left to stop in",
        ),
        (
            with_supervisor(heartbeat_interval_seconds=4),
            "[supervisor] heartbeat_deadline_seconds:",
            "kills a healthy child",
        ),
        (
            with_supervisor(backoff_first_seconds=31),
            "[supervisor] backoff_first_seconds:",
            "above backoff_cap_seconds (30)",
        ),
        (with_relay(routes=()), "[relay] routes:", "no event is ever published"),
        (with_relay(renew_seconds=4), "[relay] lease_seconds:", "4 x renew_seconds (16 s)"),
        (
            with_aws(read_timeout_seconds=13),
            "[relay] lease_seconds:",
            "another relay may publish the same events",
        ),
        (with_relay(poll_min_seconds=2), "[relay] poll_min_seconds:", "above poll_max_seconds"),
        (
            with_relay(wake_up=True, sleep_max_seconds=0.5),
            "[relay] sleep_max_seconds:",
            "below poll_max_seconds (1)",
        ),
        (with_relay(backoff_first_seconds=61), "[relay] backoff_first_seconds:", "above"),
        (routed_to("sqs:ordres"), "[[relay.routes]] #1 to:", 'did you mean "sqs:orders"?'),
        (routed_to("orders"), "[[relay.routes]] #1 to:", 'did you mean "sqs:orders"?'),
        (routed_to("kafka:orders"), "[[relay.routes]] #1 to:", "unknown destination"),
        (routed_to("sns:no topic"), "[[relay.routes]] #1 to:", "no name of a topic"),
        (routed_to("eventbridge:bus"), "[[relay.routes]] #1 to:", "which says what source"),
        (routed_to("log:a b"), "[[relay.routes]] #1 to:", "1 to 80 letters"),
        (routed_to("sqs:orders", "sqs:orders"), "[[relay.routes]] #1 to:", "twice"),
        (
            with_relay(routes=(changed(ROUTE, ordering="none", on_exhausted="block"),)),
            "[[relay.routes]] #1 on_exhausted:",
            "none of them waits",
        ),
        (
            changed(
                with_queue(queue_name="orders.fifo"),
                relay=changed(RELAY, routes=(changed(ROUTE, ordering="none"),)),
            ),
            "[[relay.routes]] #1 ordering:",
            "in any order",
        ),
        (
            changed(with_queue(handlers=()), relay=None),
            "[queues.orders] handlers:",
            "no route publishes to it",
        ),
        (
            with_queue(wait_seconds=16),
            "[queues.orders] wait_seconds:",
            "a kill; lower it to at most 15, or raise grace_seconds to at least 26",
        ),
        # A wait of 0 is no remedy, though it would fit.
        (
            with_supervisor(grace_seconds=10),
            "[queues.orders] wait_seconds:",
            "a stop would end in a kill; raise grace_seconds to at least 20",
        ),
        (with_queue(visibility_seconds=4), "[queues.orders] visibility_seconds:", "half of it"),
        (
            with_queue(backoff=BackoffSettings(first_seconds=301)),
            "[queues.orders] backoff:",
            "first_seconds (301) is above cap_seconds (300)",
        ),
        (
            with_handler(backoff=BackoffSettings(cap_seconds=1)),
            "[[queues.orders.handlers]] #1 (shop.ship) backoff:",
            "first_seconds (2) is above cap_seconds (1)",
        ),
        (with_queue(max_attempts=26), "[queues.orders] max_receive_count:", "(104)"),
        (
            with_queue(handlers=(changed(HANDLER, max_attempts=26),)),
            "[queues.orders] max_receive_count:",
            "deploys would dead-letter healthy messages",
        ),
        (
            with_queue(dead_letter_retention_days=3),
            "[queues.orders] dead_letter_retention_days:",
            "keeps the age",
        ),
        (
            with_queue(queue_name="orders.fifo", dead_letter="letters"),
            "[queues.orders] dead_letter:",
            '"letters" is a standard queue, but "orders.fifo" is a FIFO queue',
        ),
        (
            with_queue(dead_letter="orders-dlq.fifo"),
            "[queues.orders] dead_letter:",
            '"orders-dlq.fifo" is a FIFO queue, but "orders" is a standard queue',
        ),
        (
            fifo_table(dead_letter="letters"),
            '[queues."orders.fifo"] dead_letter:',
            'name one that ends in ".fifo"',
        ),
        (
            fifo_table(queue_name="orders", dead_letter="letters.fifo"),
            '[queues."orders.fifo"] dead_letter:',
            'name one without ".fifo"',
        ),
        (with_queue(queue_name="q" * 80), "[queues.orders] dead_letter:", "80 characters"),
        (
            with_queue(queue_name="q" * 72 + ".fifo"),
            "[queues.orders] dead_letter:",
            "80 characters",
        ),
        (
            with_queue(queue_name="orders.fifo", handlers=(changed(BATCHED, event="*"),)),
            "[[queues.orders.handlers]] #1 (shop.count) batch:",
            '"orders.fifo" is a FIFO queue',
        ),
        (
            with_queue(handlers=(BATCHED,), concurrency=9),
            "[[queues.orders.handlers]] #1 (shop.count) batch:",
            "10 is above the queue's concurrency (9)",
        ),
        (
            with_queue(handlers=(changed(BATCHED, inbox="after"),)),
            "[[queues.orders.handlers]] #1 (shop.count) batch:",
            'inbox = "after" marks each event by itself',
        ),
        (
            with_queue(handlers=(changed(BATCHED, inbox="own"),)),
            "[[queues.orders.handlers]] #1 (shop.count) batch:",
            'inbox = "own" marks each event by itself',
        ),
        (
            with_queue(handlers=(HANDLER, changed(BATCHED, event="*.paid"))),
            "[[queues.orders.handlers]] #2 (shop.count) batch:",
            'handler "shop.ship" may get the same events ("order.*" and "*.paid")',
        ),
        (
            changed(
                with_queue(handlers=(changed(HANDLER, inbox="own"),)), database=None, relay=None
            ),
            "[database]: missing",
            "keeps its inbox there",
        ),
        (with_queue(dead_letter="orders"), "[queues.orders] dead_letter:", "circle forever"),
        (
            two_queues({}, {"queue_name": "orders"}),
            "[queues.payments] queue_name:",
            "only some of the messages",
        ),
        (
            two_queues({"dead_letter": "x"}, {"dead_letter": "x", "dead_letter_retention_days": 9}),
            "[queues.payments] dead_letter_retention_days:",
            "for which [queues.orders] says 14",
        ),
        (
            two_queues({}, {"handlers": (HANDLER,)}),
            "[[queues.payments.handlers]] #1 (shop.ship):",
            "taken by [[queues.orders.handlers]] #1 (shop.ship)",
        ),
        (
            with_queue(
                handlers=(
                    changed(HANDLER, timeout_seconds=40_000),
                    changed(HANDLER, name="b", event="order.created", timeout_seconds=40_000),
                )
            ),
            "[[queues.orders.handlers]] #2 (b) timeout_seconds:",
            "80000 s together",
        ),
    ],
)
def test_what_cannot_work_is_one_problem(settings: Settings, where: str, why: str) -> None:
    (problem,) = broken_rules(settings)

    assert problem.startswith(where)
    assert why in problem


def test_dead_letters_that_circle_are_told_for_each_queue() -> None:
    problems = broken_rules(two_queues({"dead_letter": "payments"}, {"dead_letter": "orders"}))

    assert len([problem for problem in problems if "circle forever" in problem]) == 2


@pytest.mark.parametrize(
    ("settings", "table", "names"),
    [
        (with_queue(), "orders", ("orders", "orders-dlq")),
        (with_queue(queue_name="shop.fifo"), "orders", ("shop.fifo", "shop-dlq.fifo")),
        (with_queue(queue_name="shop", dead_letter="x"), "orders", ("shop", "x")),
        (fifo_table(), "orders.fifo", ("orders.fifo", "orders-dlq.fifo")),
        (fifo_table(queue_name="orders"), "orders.fifo", ("orders", "orders-dlq")),
        (fifo_table(dead_letter="x.fifo"), "orders.fifo", ("orders.fifo", "x.fifo")),
    ],
)
def test_the_default_dead_letter_queue_is_of_the_type_of_its_queue(
    settings: Settings, table: str, names: tuple[str, str]
) -> None:
    assert (settings.sqs_queue_name(table), settings.dead_letter_name(table)) == names
    assert broken_rules(settings) == []


def test_all_broken_rules_are_told_at_once() -> None:
    settings = changed(
        with_queue(wait_seconds=20, visibility_seconds=2, handlers=(HANDLER, HANDLER)),
        relay=RelaySettings(routes=(), poll_min_seconds=5),
    )

    assert len(broken_rules(settings)) == 5


def test_a_url_is_not_shown() -> None:
    for url in ("hunter2", "postgresql+x://u:hunter2@h/d", "postgresql://u:hunter2@@h/d"):
        assert "hunter2" not in str(broken_rules(with_url(url)))


def test_settings_that_no_frame_could_carry_are_refused() -> None:
    queues = {
        f"queue-{number}": changed(QUEUE, handlers=(changed(HANDLER, name=f"handler-{number}"),))
        for number in range(1500)
    }

    (problem,) = broken_rules(changed(GOOD, relay=None, queues=queues))

    assert "split the queues" in problem


def test_a_queue_that_is_only_published_to_needs_no_handlers() -> None:
    assert broken_rules(with_queue(handlers=(), wait_seconds=20, visibility_seconds=2)) == []
