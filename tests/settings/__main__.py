"""`python -m tests.settings` writes the page of all settings."""

from tests.settings import page


def main() -> None:
    page.PATH.write_text(page.page(), encoding="utf-8")


if __name__ == "__main__":
    main()
