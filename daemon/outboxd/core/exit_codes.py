"""What the exit status of a command or of a child says to whoever started it."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Named so that a service manager's rules can be written from this list."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    NEVER_READY = 3  # of a child: it cannot work as things are; of the daemon: such a first start
    RESTART_LIMIT = 4  # the relay or the extender kept crashing: the whole should be restarted
    DRAIN_DEADLINE = 5  # a stop took longer than grace_seconds allows, and something was killed
    HANDLER_TIMEOUT = 6  # of a child: a handler that nothing can interrupt was over its time
    ORPHANED = 75  # a child whose supervisor is gone
    INVALID_CONFIGURATION = 78  # restarting cannot help
