"""The one clock of deadlines and leases."""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Seconds since boot, the same in every process of this host, and running through a suspend.

    CLOCK_BOOTTIME on Linux, CLOCK_MONOTONIC elsewhere (clock_gettime(2)). Wall time steps, and the
    monotonic clock of Linux stands still while a virtual machine is suspended: a lease that SQS or
    PostgreSQL already gave away would look alive.
    """
    return time.clock_gettime(_CLOCK)
