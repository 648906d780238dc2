"""`bench doctor`: can this machine grade untrusted code, and what is installed?"""

from __future__ import annotations

import typer
from rich.table import Table

from bench.cli.terminal import Terminal
from bench.record.provenance import machine, package_versions
from bench.run.experiment.code import code_version
from bench.run.sandbox import Guards, guards

out = Terminal()

MISSING_GUARD_NOTE = (
    "Code that a model wrote does not run here without --unguarded: a replay shows the grades of its recording, and anything "
    "else is refused. docs/limits.md lists what code can do where a guard is missing."
)
"""What a missing guard changes, for the last line of the command."""


def guards_table(guards: Guards) -> Table:
    """Return a table of the sandbox guards: whether each guard is active, and what it does or why it is missing."""
    table = Table("guard of the sandbox", "in force", "what it does, or why it is missing", title_justify="left")
    for guard in guards.each:
        table.add_row(guard.name, "yes" if guard.in_force else "NO", guard.words)
    return table


def versions_table() -> Table:
    """Return a table of the versions of code, packages and machine, as a run's manifest records them."""
    table = Table("code, package or machine", "version")
    for name, value in {**dict(code_version()), **package_versions(), **dict(machine())}.items():
        table.add_row(str(name), str(value))
    return table


def doctor() -> None:
    """Check whether this machine can run models' code safely.

    The command shows the guards of the sandbox and all versions. It exits with 1 if a guard is missing.

    For example: bench doctor
    """
    guarded = guards()
    out.show(guards_table(guarded))
    out.show(versions_table())
    if guarded.missing:
        lacking = ", ".join(guard.name for guard in guarded.missing)
        out.print(f"Not all guards are in force: {lacking}. {MISSING_GUARD_NOTE}")
    raise typer.Exit(1 if guarded.missing else 0)
