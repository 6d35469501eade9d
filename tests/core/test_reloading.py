"""Which children a new configuration concerns, and what no reload can change."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from outboxd.core.children import children_of
from outboxd.core.reloading import (
    Candidate,
    Difference,
    difference,
    given_to,
    needs_restart,
    terms_of,
    with_queues_of,
)
from outboxd.core.settings import (
    AwsSettings,
    DatabaseSettings,
    HandlerSettings,
    HttpSettings,
    InboxSettings,
    LoggingSettings,
    QueueSettings,
    RelaySettings,
    RouteSettings,
    Settings,
    SupervisorSettings,
)

QUICK = HandlerSettings(event="*", handler="a:b", name="quick", timeout_seconds=5)
ORDERS = QueueSettings(handlers=(QUICK,), processes=2)
MAILS = QueueSettings(handlers=(replace(QUICK, name="mail"),))
ROUTED = QueueSettings(queue_name="elsewhere")
RELAY = RelaySettings(routes=(RouteSettings(events="*", to=("sqs:orders", "sqs:routed")),))
OLD = Settings(
    database=DatabaseSettings(url="postgresql://secret@localhost/shop"),
    relay=RELAY,
    queues={"orders": ORDERS, "mails": MAILS, "routed": ROUTED},
)
EVERYBODY = ("extender", "relay", "consumer:orders/1", "consumer:orders/2", "consumer:mails/1")
POOL = EVERYBODY[2:4]


def changes(new: Settings, *, everything: bool = False) -> Difference:
    return difference(
        terms_of(OLD, children_of(OLD)), terms_of(new, children_of(new)), everything=everything
    )


def with_supervisor(**settings: Any) -> Settings:
    return replace(OLD, supervisor=SupervisorSettings(**settings))


def with_orders(**settings: Any) -> Settings:
    return replace(OLD, queues={**OLD.queues, "orders": replace(ORDERS, **settings)})


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        (OLD, ()),
        (with_orders(concurrency=99), POOL),
        (with_orders(max_attempts=99), POOL),
        (with_orders(visibility_seconds=99), ("extender", *POOL)),
        (with_orders(fair_groups=True), ("relay", *POOL)),
        (replace(OLD, relay=replace(RELAY, poll_max_seconds=0.7)), ("relay",)),
        (
            replace(OLD, database=DatabaseSettings(url="postgresql://new@localhost/shop")),
            EVERYBODY[1:],
        ),
        (replace(OLD, aws=AwsSettings(read_timeout_seconds=9)), EVERYBODY),
        (replace(OLD, inbox=InboxSettings(retention_days=30)), EVERYBODY[2:]),
        (replace(OLD, import_path=("/new",)), EVERYBODY[2:]),
        (replace(OLD, logging=LoggingSettings(level="debug")), EVERYBODY),
        (with_supervisor(crashes=9, start_deadline_seconds=99, backoff_cap_seconds=9), ()),
        (with_supervisor(metrics_interval_seconds=9), EVERYBODY),
        (with_supervisor(heartbeat_deadline_seconds=20), ("extender", "relay")),
    ],
)
def test_those_are_restarted_that_are_given_something_else(
    new: Settings, changed: tuple[str, ...]
) -> None:
    found = changes(new)

    assert found.changed == changed
    assert found.added == found.removed == ()


def test_a_queue_that_comes_brings_its_pool_and_changes_the_extender() -> None:
    new = replace(OLD, queues={**OLD.queues, "new": replace(MAILS, processes=2)})

    found = changes(new)

    assert found.added == ("consumer:new/1", "consumer:new/2")
    assert found.changed == ("extender",)
    assert found.removed == ()


def test_a_queue_that_goes_takes_its_pool_along() -> None:
    new = replace(OLD, queues={name: OLD.queues[name] for name in ("orders", "routed")})

    assert changes(new).removed == ("consumer:mails/1",)
    assert changes(new).changed == ("extender",)


def test_a_relay_that_goes_leaves_the_pools_alone() -> None:
    found = changes(replace(OLD, relay=None))

    assert found.removed == ("relay",)
    assert found.changed == ()


def test_everything_is_every_child_that_stays() -> None:
    assert changes(OLD, everything=True).changed == EVERYBODY


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_each_child_is_in_one_part(old: set[str], new: set[str]) -> None:
    def of(queues: set[str]) -> Settings:
        return replace(OLD, queues=dict.fromkeys(sorted(queues), MAILS))

    one, other = of(old), of(new)
    before = terms_of(one, children_of(one))
    after = terms_of(other, children_of(other))
    found = difference(before, after)
    parts = [*found.added, *found.changed, *found.removed, *found.unchanged]

    assert sorted(parts) == sorted({*before, *after})
    assert {*found.added, *found.changed, *found.unchanged} == set(after)


def test_no_child_holds_a_secret_that_it_has_no_use_for() -> None:
    specs = {spec.name: spec for spec in children_of(OLD)}

    assert given_to(OLD, specs["extender"].slot).database is None
    assert given_to(OLD, specs["consumer:mails/1"].slot).queues == {"mails": MAILS}
    assert given_to(OLD, specs["relay"].slot).queues.keys() == {"orders", "routed"}
    assert given_to(OLD, specs["relay"].slot).sqs_queue_name("routed") == "elsewhere"
    assert given_to(OLD, specs["relay"].slot).consumed == ()


def test_an_extender_between_two_configurations_knows_the_queues_of_both() -> None:
    new = replace(OLD, queues={"new": MAILS})
    old_terms = terms_of(OLD, children_of(OLD))["extender"]
    new_terms = terms_of(new, children_of(new))["extender"]

    both = with_queues_of(new_terms, old_terms)

    assert both.settings.queues.keys() == {"orders", "mails", "new"}
    assert both.spec == new_terms.spec


@pytest.mark.parametrize(
    ("new", "setting"),
    [
        (replace(OLD, http=HttpSettings(port=1)), "[http] port"),
        (replace(OLD, http=HttpSettings(host="::1")), "[http] host"),
        (with_supervisor(control_socket="/run/x/y"), "[supervisor] control_socket"),
        (replace(OLD, aws=AwsSettings(region="eu-west-1")), "[aws] region"),
        (replace(OLD, aws=AwsSettings(endpoint_url="http://a")), "[aws] endpoint_url"),
        (with_orders(queue_name="renamed"), "[queues.orders] queue_name"),
    ],
)
def test_what_only_a_restart_can_change_is_named(new: Settings, setting: str) -> None:
    assert needs_restart(OLD, new) == [
        f"{setting}: a reload cannot change it; restart outboxd for that"
    ]


def test_everything_else_can_be_reloaded() -> None:
    new = replace(OLD, relay=None, queues={"new": MAILS}, logging=LoggingSettings(format="text"))

    assert needs_restart(OLD, new) == []
    assert needs_restart(OLD, OLD) == []


def test_a_configuration_is_the_same_after_its_way_through_a_pipe() -> None:
    sent = Candidate("1", settings=OLD)

    told = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=Candidate)

    assert told == sent
    assert told.settings is not None
    assert changes(told.settings).unchanged == EVERYBODY
