from benchmarks import catalogue as c
from benchmarks import figures as f
from benchmarks.figures import RATIO, Figures, Round, rows_of
from benchmarks.peers import celery, dramatiq, sqs_consumer
from benchmarks.report import Results, table
from benchmarks.targets import judged

BEST_ONE_BY_ONE = "consume: events per CPU-second, x the best that deletes one by one"
FLOOR_RATIO = "consume: events per CPU-second, x floor"
STRETCH = "consume: events per CPU-second, x floor (stretch)"


def a_round(**thrift: float) -> Round:
    """Of consume, by the subject's name with `_` for what a name may not hold."""
    names = {
        "outboxd": c.OUTBOXD,
        "floor": c.FLOOR,
        "celery": celery.THREADS.name,
        "dramatiq": dramatiq.DRAMATIQ.name,
        "node": sqs_consumer.BATCHES.name,
    }
    return {(c.CONSUME, names[name]): figures(value) for name, value in thrift.items()}


def figures(thrift: float) -> Figures:
    return {f.THRIFT: thrift, f.RATE: thrift / 2, f.EVENTS: 1000.0}


def results(*rounds: Round) -> Results:
    return Results({"cpus": 2}, {}, len(rounds), {}, rows_of(rounds), judged(rounds))


def test_ratios_are_taken_within_each_round() -> None:
    rounds = [a_round(outboxd=100, floor=50), a_round(outboxd=30, floor=10)]

    (ratio,) = (
        row
        for row in rows_of(rounds)
        if row.subject == RATIO.format(c.FLOOR) and row.metric == f.THRIFT
    )

    assert (ratio.median, ratio.spread) == (2.5, 1.0)


def test_the_peer_to_beat_is_the_best_one_of_each_round() -> None:
    rounds = [
        a_round(outboxd=8, celery=1, dramatiq=2),
        a_round(outboxd=8, celery=4, dramatiq=2),
        a_round(outboxd=9, celery=1),
    ]

    (target,) = (t for t in judged(rounds) if t.name == BEST_ONE_BY_ONE)

    assert (target.wanted, target.got, target.met) == (">= 4", 4.0, True)


def test_a_target_that_was_not_measured_is_not_judged() -> None:
    names = {target.name for target in judged([a_round(outboxd=8, floor=10)])}

    assert FLOOR_RATIO in names
    assert BEST_ONE_BY_ONE not in names
    assert not any(name.startswith("relay") for name in names)


def test_a_stretch_that_is_missed_is_told_and_no_failure() -> None:
    found = results(a_round(outboxd=8, floor=10))

    assert found.missed == []
    assert {t.name: t.met for t in found.targets}[STRETCH] is False


def test_a_missed_target_is_a_failure_for_those_who_ask() -> None:
    found = results(a_round(outboxd=6, floor=10))

    assert [target.name for target in found.missed] == [FLOOR_RATIO]


def test_the_table_has_every_subject_and_what_outboxd_is_to_it() -> None:
    lines = table(results(a_round(outboxd=6, floor=10, node=12))).splitlines()

    assert [line for line in lines if line.startswith("outboxd ")]
    (floor,) = (line for line in lines if line.startswith("floor"))
    assert floor.endswith("0.60 x")
    (node,) = (line for line in lines if line.startswith(sqs_consumer.BATCHES.name))
    assert node.endswith("0.50 x")
