"""Comments of a configuration file are about what follows them."""

import pytest

from tests.settings.catalogue import NAME, general
from tests.settings.reference import UnknownLine, reference, uncommented, values

TEXT = """\
# About the file.

# Where from.
#import_path = []


# The table,
# in two lines.
[http]

# Both of them.
#host = "127.0.0.1"
port = 1

#forgotten = true

[[queues."a.fifo".handlers]]
name = "n"
# Its own.
#backoff.factor = 2.0
"""


def told(path: tuple[str, ...]) -> tuple[str, ...]:
    return reference(TEXT).settings[path].lines


def test_a_comment_is_about_what_follows_without_a_blank_line() -> None:
    assert told(("import_path",)) == ("Where from.",)
    assert reference(TEXT).tables["http",].lines == ("The table,", "in two lines.")
    assert told(("http", "host")) == ("Both of them.",)


def test_settings_without_a_blank_line_between_share_a_comment() -> None:
    both = reference(TEXT).settings
    assert both["http", "port"] is both["http", "host"]
    assert both["http", "port"].first == ("http", "host")


def test_a_setting_has_no_comment_of_others() -> None:
    assert told(("http", "forgotten")) == ()
    assert told(("queues", "a.fifo", "handlers", "name")) == ()
    assert told(("queues", "a.fifo", "handlers", "backoff", "factor")) == ("Its own.",)


def test_a_line_that_is_not_understood_is_no_comment() -> None:
    with pytest.raises(UnknownLine, match="Host"):
        reference("Host = 1")
    with pytest.raises(UnknownLine, match="#host=1"):
        reference("#host=1")


def test_settings_that_are_switched_off_have_values_too() -> None:
    assert uncommented("# a = 1\n#a = 1") == "# a = 1\na = 1"
    assert values(TEXT)["http"] == {"host": "127.0.0.1", "port": 1, "forgotten": True}


def test_names_that_users_choose_are_replaced_in_paths() -> None:
    assert general(("queues", "a.fifo", "handlers", "name")) == ("queues", NAME, "handlers", "name")
    assert general(("queues", "a.fifo")) == ("queues", NAME)
    assert general(("http", "port")) == ("http", "port")
    with pytest.raises(KeyError):
        general(("htp", "port"))
