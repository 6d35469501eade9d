"""Everything that the demo starts, in order; leaving the block stops it in reverse."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.provisioning import Provisioner
from outboxd.core.errors import Unavailable
from outboxd.core.settings import DatabaseSettings, Settings
from outboxd.demo import mishaps
from outboxd.demo.aws import check_endpoint, local_aws, use_credentials
from outboxd.demo.buses import delete_buses
from outboxd.demo.configuration import Addresses, Configuration
from outboxd.demo.database import demo_database, fill_shelves, migrate
from outboxd.demo.errors import DemoError
from outboxd.demo.options import DemoOptions
from outboxd.demo.partners import Partners, running_partners
from outboxd.demo.post_office import post_office
from outboxd.demo.private_folder import private_folder
from outboxd.demo.queues import Queues
from outboxd.demo.s3_and_ses import S3AndSes, s3_and_ses
from outboxd.demo.storefront import Storefront, storefront
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
    partners: Partners
    s3_and_ses: S3AndSes
    storefront: Storefront
    supervisor: Supervisor

    @property
    def schema(self) -> str:
        """Where outboxd's tables are."""
        return _database(self.settings).schema


@contextmanager
def scene(options: DemoOptions, say: Say, stopping: Callable[[], bool]) -> Iterator[Scene]:
    """A migrated database, provisioned queues, everybody whom the shop talks to, and the daemon,
    ready, in a temporary folder.

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
        say("starting S3 and SES, a mail server, and the shop's partners")
        documents = stack.enter_context(s3_and_ses(folder / "s3-and-ses.log"))
        mail = stack.enter_context(post_office(folder / "mail", folder / "post-office.log"))
        partners = stack.enter_context(running_partners(folder / "partners.log"))
        mishaps.script(partners)
        addresses = Addresses(
            smtp_host=mail.host,
            smtp_port=mail.port,
            partners=partners.endpoint,
            s3_and_ses=documents.endpoint,
        )
        configuration = Configuration(folder, dsn, endpoint, addresses, options)
        settings = load_settings(configuration.path, os.environ)
        say("migrating and provisioning")
        migrate(_database(settings))
        fill_shelves(dsn)
        if options.aws_endpoint is not None:
            stack.callback(_clean_up, settings, say)
        provisioner = Provisioner(settings)
        provisioner.carry_out(provisioner.plan())
        say("opening the shop")
        shop = stack.enter_context(
            storefront(dsn, secrets.token_hex(16), folder / "storefront.log")
        )
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
            queues=Queues(settings),
            mail=mail.maildir,
            partners=partners,
            s3_and_ses=documents,
            storefront=shop,
            supervisor=supervisor,
        )


def _clean_up(settings: Settings, say: Say) -> None:
    """An error in here would hide the one that the demo ends with, which has the same cause."""
    try:
        delete_buses(settings)
        Queues(settings).delete()
    except Unavailable as error:
        say(f"queues or buses of the demo may be left, to be deleted by hand: {error}")


def _database(settings: Settings) -> DatabaseSettings:
    if settings.database is None:
        raise DemoError("config/demo.toml has no [database]: the installation is damaged")
    return settings.database
