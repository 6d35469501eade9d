"""docs/metrics.md and the list of runbooks, written from the code and the alerts."""

import re
from collections.abc import Iterable
from pathlib import Path

from outboxd.resources import project_directory
from tests.markdown import table
from tests.metrics.catalogue import Entry, catalogue
from tests.metrics.rules import RUNBOOKS, Rule, rules

PATH: Path = project_directory() / "docs" / "metrics.md"
INDEX: Path = RUNBOOKS / "README.md"
FRAME: Path = Path(__file__).with_name("page.md.txt")
"""The page with its prose, and `{{ process }}` where the table of a process goes."""

_INDEX = """\
# Runbooks

One page for each alert of `config/prometheus/outboxd.rules.yml`: what it means, what to look at, what to do,
and what not to do. `page` is for a person now, `warning` for the next working hour.

Their commands are run beside the daemon, with its configuration and its environment. Where it is a
[systemd unit](../deploy-systemd.md), as root, and with each `LoadCredential=` of the unit as one more
`--property`:

```bash
outboxd() {
  systemd-run --quiet --wait --collect --pty --pipe --same-dir \\
    --property=EnvironmentFile=-/etc/outboxd/environment \\
    --setenv=OUTBOXD_CONFIG=/etc/outboxd/outboxd.toml /opt/outboxd/bin/outboxd "$@"
}
```

[On ECS](../deploy-ecs.md#commands-beside-the-daemon) each command is one of `aws ecs execute-command`. What is
written in capitals is yours to fill in: `QUEUE` is a table of `[queues]`, `CHILD` a process as
`/readyz?verbose` lists it, and alerts have both as labels. `pause`, `resume`, `restart`, `reload` and `dump` want
a `[supervisor] control_socket` ([control.md](../control.md)). Without one, SIGHUP to the daemon's own process is
`reload` and SIGUSR1 is `dump`.

| alert | | |
|---|---|---|
"""  # noqa: E501


def page() -> str:
    """docs/metrics.md."""
    text = FRAME.read_text(encoding="utf-8")
    for process, entries in catalogue().items():
        text = text.replace(f"{{{{ {process} }}}}\n", _table(entries))
    assert "{{ " not in text
    return text


def index() -> str:
    """docs/runbooks/README.md."""
    rows = "".join(
        f"| [{name}]({name}.md) | {rule.labels['severity']} | {_told(rule)} |\n"
        for name, rule in rules().items()
    )
    return _INDEX + rows


def _told(rule: Rule) -> str:
    summary = rule.annotations["summary"].replace("}}{{", "}} or {{")
    return re.sub(r"{{ \$labels\.(\w+) }}", r"*\1*", summary)


def _table(entries: Iterable[Entry]) -> str:
    columns = ["name", "type", "labels", "what it is", "several daemons"]
    return table(columns, map(_row, entries))


def _row(entry: Entry) -> list[str]:
    labels = ", ".join(_label(label, values) for label, values in entry.labels.items())
    return [f"`{entry.name}`", entry.type, labels, entry.help, entry.across]


def _label(label: str, values: tuple[str, ...]) -> str:
    told = f" ({', '.join(values)})" if values else ""
    return f"`{label}`{told}"
