"""The project's files are found in a checkout and in an installation."""

from pathlib import Path

import pytest

from outboxd import resources


def package_in(folder: Path) -> Path:
    package = folder / "daemon" / "outboxd"
    package.mkdir(parents=True)
    return package


def test_a_checkout_holds_them_two_levels_above_the_package(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    (tmp_path / "migrations" / "outboxd").mkdir(parents=True)

    assert resources.find_project(package) == tmp_path


def test_a_wheel_holds_them_inside_the_package(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    (package / "_project" / "migrations" / "outboxd").mkdir(parents=True)

    assert resources.find_project(package) == package / "_project"


def test_an_incomplete_installation_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="reinstall outboxd"):
        resources.find_project(package_in(tmp_path))


def test_this_project_has_them() -> None:
    assert (resources.project_directory() / "migrations" / "shop").is_dir()
