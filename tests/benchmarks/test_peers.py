import re
from pathlib import Path

import pytest

from benchmarks.catalogue import SCENARIOS
from benchmarks.peers import installing
from benchmarks.peers.peer import PROGRAMS, Peer

PEERS = {e.peer.name: e.peer for s in SCENARIOS for e in s.entrants if e.peer is not None}
FILES = [installing.PINS, installing.PACKAGE, installing.LOCK]
ON_NODE = Peer(name="on node", packages=(), work=())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(installing, "HOME", tmp_path)
    monkeypatch.setattr(installing, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(installing, "NODE", tmp_path / "node")
    return tmp_path


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_every_package_is_pinned_and_every_program_is_there(peer: Peer) -> None:
    pins = installing.PINS.read_text()

    for package in peer.packages:
        assert re.search(rf"^{re.escape(package.partition('[')[0])}==", pins, re.MULTILINE)
    for argument in (*peer.work, *peer.producer):
        if argument.endswith((".py", ".mjs")):
            assert PROGRAMS.joinpath(argument).exists()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_an_index(path: Path) -> None:
    assert "://" not in path.read_text()


def test_a_machine_without_node_is_told_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    absent = installing.install([ON_NODE], lambda text: None)

    assert absent == {"on node": "there is no node and no npm on this machine"}


def test_a_peer_that_cannot_be_installed_is_absent_with_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = home / "python" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 'ERROR: none at http://index/new' >&2\nexit 1\n")
    python.chmod(0o755)
    said: list[str] = []

    absent = installing.install([Peer(name="new", packages=("new",), work=())], said.append)

    assert absent == {"new": "it could not be installed: ERROR: none at (address)"}
    assert said == ["installing new"]


def test_what_is_installed_is_not_installed_again(home: Path) -> None:
    python = home / "python" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    said: list[str] = []
    peer = Peer(name="new", packages=("new",), work=())

    assert installing.install([peer, peer], said.append) == {}
    assert installing.install([peer], said.append) == {}

    assert said == ["installing new"]
