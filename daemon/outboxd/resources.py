"""Where the project's files beside the code are: migrations, configurations, handlers."""

from pathlib import Path


def project_directory() -> Path:
    """The folder that holds migrations/, config/ and handlers/."""
    return find_project(Path(__file__).resolve().parent)


def find_project(package: Path) -> Path:
    """The same, for outboxd installed at `package`: inside it in a wheel, else its repository."""
    places = (package / "_project", package.parent.parent)
    for place in places:
        if (place / "migrations" / "outboxd").is_dir():
            return place
    raise FileNotFoundError(
        f"outboxd's migrations, configurations and handlers are neither in {places[0]} nor in "
        f"{places[1]}: the installation is incomplete, reinstall outboxd"
    )
