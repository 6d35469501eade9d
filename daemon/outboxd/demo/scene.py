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
from outboxd.demo.post_office import PostOffice, post_office
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


class Stopped(Exception):
    """Somebody asked for the end before everything had been started."""


@contextmanager
def scene(options: DemoOptions, say: Say, stopping: Callable[[], bool]) -> Iterator[Scene]:
    """A migrated database, provisioned queues, everybody whom the shop talks to, and the daemon,
    ready, in a temporary folder.

    `stopping` is asked between the steps. Raises Stopped when it says so.
    """

    def step(text: str) -> None:
        if stopping():
            raise Stopped
        say(text)

    if options.aws_endpoint is not None:
        check_endpoint(options.aws_endpoint)
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder("outboxd-demo-"))
        step("creating a database")
        dsn = stack.enter_context(demo_database(options.database_url))
        endpoint = options.aws_endpoint
        if endpoint is None:
            step("starting the local AWS")
            endpoint = stack.enter_context(local_aws(folder / "localaws.log"))
        use_credentials(endpoint)
        step("starting S3 and SES, a mail server, and the shop's partners")
        others = stack.enter_context(_others(folder))
        configuration = Configuration(folder, dsn, endpoint, others.addresses, options)
        settings = load_settings(configuration.path, os.environ)
        step("migrating and provisioning")
        migrate(_database(settings))
        fill_shelves(dsn)
        if options.aws_endpoint is not None:
            stack.callback(_clean_up, settings, say)
        provisioner = Provisioner(settings)
        provisioner.carry_out(provisioner.plan())
        step("opening the shop")
        secret = secrets.token_hex(16)
        shop = stack.enter_context(storefront(dsn, secret, folder / "storefront.log"))
        step("starting the supervisor")
        log = folder / "outboxd.log"
        supervisor = stack.enter_context(supervising(configuration.path, settings, log))
        supervisor.await_ready(stopping)
        if stopping():
            raise Stopped
        configuration.write(supervisor.port)
        yield Scene(
            dsn=dsn,
            settings=settings,
            configuration=configuration.path,
            log=log,
            queues=Queues(settings),
            mail=others.mail.maildir,
            partners=others.partners,
            s3_and_ses=others.s3_and_ses,
            storefront=shop,
            supervisor=supervisor,
        )


class _Others(Struct, frozen=True, kw_only=True):
    """Everybody whom the shop's handlers talk to."""

    s3_and_ses: S3AndSes
    mail: PostOffice
    partners: Partners

    @property
    def addresses(self) -> Addresses:
        return Addresses(
            smtp_host=self.mail.host,
            smtp_port=self.mail.port,
            partners=self.partners.endpoint,
            s3_and_ses=self.s3_and_ses.endpoint,
        )


@contextmanager
def _others(folder: Path) -> Iterator[_Others]:
    with (
        s3_and_ses(folder / "s3-and-ses.log") as documents,
        post_office(folder / "mail", folder / "post-office.log") as mail,
        running_partners(folder / "partners.log") as partners,
    ):
        mishaps.script(partners)
        yield _Others(s3_and_ses=documents, mail=mail, partners=partners)


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
