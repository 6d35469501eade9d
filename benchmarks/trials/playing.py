"""Plays trials, one after another."""

from collections.abc import Sequence

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Round
from benchmarks.trials.rounds import beside
from benchmarks.trials.trial import Stage, Trial
from outboxd.demo.errors import DemoError


def play_trials(trials: Sequence[Trial], stage: Stage) -> list[Round]:
    """All of their rounds, side by side. Raises BenchmarkError, but not for a peer."""
    played: list[Round] = []
    for trial in trials:
        stage.say(f"trial: {trial.family}")
        try:
            played = beside(played, trial.play(stage))
        except (BenchmarkError, DemoError) as error:
            raise BenchmarkError(f"{trial.family}: {error}") from error
    return played
