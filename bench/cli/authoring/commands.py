"""The commands `bench check` and `bench new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.authoring.check import check_pack
from bench.cli.authoring.new import new_plugin, new_scenario
from bench.cli.authoring.scaffold import check_command
from bench.cli.command import PacksOption, group_of
from bench.cli.junit import JunitCase, write_junit
from bench.cli.terminal import Terminal
from bench.common.errors import PackError
from bench.common.packs import no_packs_in
from bench.common.paths import PACKS
from bench.run.packs import find_packs

new_app = group_of("Write a new pack of tasks, or a new package of parts.")
out = Terminal()


def check(
    packs: Annotated[list[str] | None, typer.Argument(metavar="PACK", help="Names of packs; all packs, if not given.")] = None,
    scenarios: PacksOption = PACKS,
    junit: Annotated[Path | None, typer.Option(help="Write the checks as a JUnit file too, for a CI server.")] = None,
) -> None:
    """Check whether packs are sound before they are run.

    Exits with 1 if a pack is not sound.

    For example: bench check multi_file_debugging
    """
    cases = list[JunitCase]()
    names = packs or list(find_packs(scenarios))
    if not names:
        raise PackError(f"no pack is checked: {no_packs_in(scenarios)}")
    for pack in names:
        for scenario, result in check_pack(pack, scenarios):
            cases.append(JunitCase(scenario, result.what, "\n".join(result.problems)))
            out.print("\n    ".join((f"{scenario}: {result.status}: {result.what}", *result.problems)))
    if junit:
        write_junit(junit, "bench check", cases)
    raise typer.Exit(1 if any(case.problem for case in cases) else 0)


@new_app.command("scenario")
def scenario_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The pack's name: lower-case letters, digits and underscores.")],
    rows: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Make one task of each row of this file, .csv or .jsonl.",
        ),
    ] = None,
) -> None:
    """Write a new pack that passes `bench check` unchanged.

    For example: bench new scenario tickets --from tickets.csv
    """
    if rows is None:
        folder = new_scenario(name, PACKS[0])
        out.print(f"{folder} is a small pack that works; make it yours, and see: {check_command(folder)}")
        return
    from bench.cli.authoring.pack_of_rows import pack_of_table  # noqa: PLC0415  few packs begin so

    out.print("\n".join(pack_of_table(name, PACKS[0], rows)))


@new_app.command("plugin")
def plugin_(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The package's name: lower-case letters, digits and underscores.")
    ],
) -> None:
    """Write a new package of parts: an architecture, a fault effect, a metric, and tests.

    For example: bench new plugin my_parts
    """
    folder = new_plugin(name, Path())
    out.print(f"{folder} is a package that works; make it yours, and see: pip install -e '{folder}[test]' && pytest {folder}")
