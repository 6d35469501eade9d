"""What the tests of supervision have in common."""

import pytest

from outboxd.supervision.process import Spawn
from tests.supervision.scene import scripted


@pytest.fixture
def spawn(monkeypatch: pytest.MonkeyPatch) -> Spawn:
    """Starts scripted children instead of real ones."""
    return scripted(monkeypatch.setenv)
