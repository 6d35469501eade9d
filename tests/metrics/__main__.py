"""`python -m tests.metrics` writes what is made from code: the page, the runbooks' list, the
dashboard."""

from tests.metrics import dashboard, page


def main() -> None:
    page.PATH.write_text(page.page(), encoding="utf-8")
    page.INDEX.write_text(page.index(), encoding="utf-8")
    dashboard.PATH.write_text(dashboard.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
