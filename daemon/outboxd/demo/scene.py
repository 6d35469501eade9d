"""Everything that the demo starts, in order; leaving the block stops it in reverse."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from outboxd.adapters.configuration import load_settings
from outboxd.core.errors import Unavailable
from outboxd.core.settings import DatabaseSettings, Settings
from outboxd.demo.aws import check_endpoint, local_aws, use_credentials
from outboxd.demo.configuration import Configuration
from outboxd.demo.database import demo_database, migrate
from outboxd.demo.errors import DemoError
from outboxd.demo.options import DemoOptions
from outboxd.demo.private_folder import private_folder
from outboxd.demo.queues import Queues
from outboxd.demo.supervisor import Supervisor, supervising

Say = Callable[[str], None]
"""Tells the person in front of the terminal what happens."""


class Scene(Struct, frozen=True, kw_only=True):
    """The running shop; `log` is the daemon's, and `mail` a Maildir."""

    dsn: str
    settings: Settings
    configuration: Path
    log: Path
    queues: Queues
    mail: Path
    supervisor: Supervisor

    @property
    def schema(self) -> str:
        """Where outboxd's tables are."""
        return _database(self.settings).schema


@contextmanager
def scene(options: DemoOptions, say: Say, stopping: Callable[[], bool]) -> Iterator[Scene]:
    """A migrated database, provisioned queues and the daemon, ready, in a temporary folder.

    When `stopping` says so, the daemon is not waited for.
    """
    if options.aws_endpoint is not None:
        check_endpoint(options.aws_endpoint)
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder("outboxd-demo-"))
        say("creating a database")
        dsn = stack.enter_context(demo_database(options.database_url))
        endpoint = options.aws_endpoint
        if endpoint is None:
            say("starting the local AWS")
            endpoint = stack.enter_context(local_aws(folder / "localaws.log"))
        use_credentials(endpoint)
        configuration = Configuration(folder, dsn, endpoint, options)
        settings = load_settings(configuration.path, os.environ)
        say("migrating and provisioning")
        migrate(_database(settings))
        queues = Queues(settings)
        if options.aws_endpoint is not None:
            stack.callback(_clean_up, queues, say)
        queues.create()
        say("starting the supervisor")
        log = folder / "outboxd.log"
        supervisor = stack.enter_context(supervising(configuration.path, settings, log))
        supervisor.await_ready(stopping)
        configuration.write(supervisor.port)
        yield Scene(
            dsn=dsn,
            settings=settings,
            configuration=configuration.path,
            log=log,
            queues=queues,
            mail=folder / "mail",
            supervisor=supervisor,
        )


def _clean_up(queues: Queues, say: Say) -> None:
    """An error in here would hide the one that the demo ends with, which has the same cause."""
    try:
        queues.delete()
    except Unavailable as error:
        say(f"queues of the demo may be left, to be deleted by hand: {error}")


def _database(settings: Settings) -> DatabaseSettings:
    if settings.database is None:
        raise DemoError("config/demo.toml has no [database]: the installation is damaged")
    return settings.database
