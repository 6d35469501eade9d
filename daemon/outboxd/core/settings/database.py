"""[database]: where PostgreSQL is."""

from typing import Annotated

from msgspec import Meta

from outboxd.core.settings.kinds import Seconds
from outboxd.core.settings.section import OptionalSecret, Secret, Section

SchemaName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z_][a-z0-9_]{0,62}\Z",
        description="a schema name of 1 to 63 lower-case letters, digits and underscores",
    ),
]


class DatabaseSettings(Section, frozen=True, kw_only=True):
    """Where PostgreSQL is. `url` is a connection URI or a libpq conninfo string, and so is
    `direct_url`: the same database without a transaction pooler in between."""

    url: Secret
    direct_url: OptionalSecret = None
    schema: SchemaName = "outboxd"
    connect_timeout_seconds: Seconds = 5.0
