"""All trials, in the order in which they are played."""

from benchmarks.trials.latency import Latency
from benchmarks.trials.recovery import Recovery
from benchmarks.trials.scale import Scale
from benchmarks.trials.start import Start
from benchmarks.trials.trial import Trial

TRIALS: tuple[Trial, ...] = (Latency(), Start(), Recovery(), Scale())
