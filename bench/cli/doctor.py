"""`bench doctor`: can this machine grade untrusted code, and what is installed?"""

from __future__ import annotations

from rich.table import Table

from bench.experiment.provenance import code_version, machine, package_versions
from bench.sandbox import Guards

WITHOUT_THEM = (
    "No code of a model is run here: a replay shows its recording's grades, and all else is refused, but for --unguarded. "
    "docs/limits.md lists what then gets through."
)
"""What a missing guard means."""


def guards_table(guards: Guards) -> Table:
    """Return each guard of the sandbox, whether it is in force, and what it does or why it is missing."""
    table = Table("guard of the sandbox", "in force", "what it does, or why it is missing", title_justify="left")
    for guard in guards.each:
        table.add_row(guard.name, "yes" if guard.in_force else "NO", guard.words)
    return table


def versions_table() -> Table:
    """Return what a run's manifest says of code, packages and machine."""
    table = Table("version", "")
    for name, value in {**dict(code_version()), **package_versions(), **dict(machine())}.items():
        table.add_row(str(name), str(value))
    return table
