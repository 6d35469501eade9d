"""The container image, built from the Dockerfile and run as a runtime would run it."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from outboxd.demo.http import get
from outboxd.demo.postgres import EmbeddedPostgres
from tests.system import image as images
from tests.system.pgbouncer import pgbouncer
from tests.system.scene import APP, Scene, eventually, free_port, handler

pytestmark = [pytest.mark.packages, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    return images.build(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def root(image: str) -> Iterator[Path]:
    """The files of a container of this module."""
    with images.mounted(image) as root:
        yield root


@pytest.fixture
def scene(
    postgres_server: EmbeddedPostgres, database: str, aws_endpoint: str, tmp_path: Path
) -> Iterator[Scene]:
    """Its database is reached by TCP: the socket of the tests' own is not for other users."""
    with pgbouncer(postgres_server.dsn, pool_size=20) as pooler:
        scene = Scene(pooler.pooled(database), aws_endpoint, tmp_path)
        scene.configure(handler("note"), handler("orphan"), port=free_port())
        tmp_path.chmod(0o755)
        yield scene


def running(
    root: Path, scene: Scene, *command: str, init: Sequence[str] = ()
) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    environ = {"OUTBOXD_CONFIG": str(scene.configuration), **images.credentials()}
    return images.container(
        root,
        ["/opt/outboxd/bin/outboxd", *command],
        environ,
        [scene.directory, APP],
        scene.directory / "container.log",
        init,
    )


def ready(scene: Scene) -> bool:
    answer = get(f"127.0.0.1:{scene.settings.http.port}", "/readyz")
    return answer is not None and answer[0] == 200


def test_the_image_runs_one_command_as_nobody_in_particular(image: str) -> None:
    settings = images.inspect(image)

    assert settings["User"] == "10001:10001"
    assert (settings["Entrypoint"], settings["Cmd"]) == (["outboxd"], ["run"])
    assert settings["StopSignal"] == "SIGTERM"
    assert settings["Healthcheck"]["Test"] == ["CMD", "outboxd", "healthcheck"]
    assert not any("SECRET" in each or "PASSWORD" in each for each in settings["Env"])


def test_the_image_has_no_tools_to_install_more_with(root: Path) -> None:
    binaries = root / "opt/outboxd/bin"

    assert (binaries / "outboxd").exists()
    assert [each.name for each in binaries.iterdir() if each.name.startswith("pip")] == []
    assert not (root / "usr/bin/gcc").exists()
    assert not (root / "src").exists()
    # Nothing can be written at run time, so what is compiled then is compiled at every start.
    assert list((root / "opt/outboxd").rglob("outboxd/__pycache__/version.*.pyc")) != []


INITS = {"alone": (), "below an init": ("tini", "--")}


@pytest.mark.parametrize("init", INITS.values(), ids=INITS)
def test_it_works_and_drains_as_pid_1_and_below_an_init(
    root: Path, scene: Scene, init: Sequence[str]
) -> None:
    assert not init or shutil.which(init[0]), "there is no tini: see tests/system/install-packages"
    with running(root, scene, "run", init=init) as started:
        eventually(lambda: ready(scene))
        ids = scene.publish("note.wanted", 20)
        eventually(lambda: len(scene.effects("note")) == 20)
        url = f"http://127.0.0.1:{scene.settings.http.port}/healthz"
        with running(root, scene, "healthcheck", "--url", url) as healthcheck:
            assert healthcheck.wait(30) == 0
        exit_code = images.terminate(started)

    assert exit_code == 0, (scene.directory / "container.log").read_text()
    assert sorted(scene.effects("note")) == sorted(ids)
    assert scene.messages_left() == 0


def test_pid_1_buries_orphans(root: Path, scene: Scene) -> None:
    """A handler's grandchildren become children of PID 1 when their parent ends."""
    with running(root, scene, "run") as started:
        eventually(lambda: ready(scene))
        ids = scene.publish("orphan.wanted", 5)
        eventually(lambda: sorted(scene.effects("orphan")) == sorted(ids))
        eventually(lambda: images.orphans(started, "sleep") == 0)
        assert images.terminate(started) == 0


def test_a_container_that_cannot_work_says_so_and_ends_at_once(root: Path, scene: Scene) -> None:
    scene.configuration.write_text("[queues.work]\nconcurency = 1\n")

    with running(root, scene, "run") as started:
        assert started.wait(30) == 78

    assert 'did you mean "concurrency"?' in (scene.directory / "container.log").read_text()
