"""The page of guarantees names tests; a renamed one must be renamed there too."""

import re

from outboxd.resources import project_directory

PROJECT = project_directory()


def test_every_test_that_the_guarantees_name_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (PROJECT / "docs" / "guarantees.md").read_text()))
    defined = {
        name
        for path in (PROJECT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
    }

    assert len(named) >= 20
    assert named <= defined
