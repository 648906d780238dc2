"""The command `bench compare`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from bench.cli.command_part import COMPARISONS, Compared
from bench.cli.junit import JunitCase, write_junit
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, nearest
from bench.common.paths import folder_of, name_of
from bench.record.reading import are_probes

# Modules that read results import pandas and scipy. No other command should wait for that, so functions import them.
if TYPE_CHECKING:
    from bench.read.compare.compare import Criterion

EXIT_CODES = {"equal": 0, "no worse": 0, "better": 0, "worse": 1, "trade-off": 3, "no better": 3, "inconclusive": 3}
"""2 is a user's mistake."""

out = Terminal()


class _Bounds(NamedTuple):
    """What `bench.read.compare.compare.compare` takes beside two runs."""

    margin: float
    measures: tuple[Criterion, ...]
    whole: bool
    allowed: Mapping[str, int]


def compare(
    run_a: Annotated[
        str, typer.Argument(help="What to compare with: a run's name under results/, its folder, or a scorecard's JSON.")
    ],
    run_b: Annotated[
        str | None, typer.Argument(help="The run, or the scorecard, that is judged; RUN_A itself, if not given.")
    ] = None,
    models: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Compare model A of RUN_A with model B of RUN_B.")
    ] = None,
    architectures: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Compare architecture A of RUN_A with B of RUN_B.")
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="What difference counts as none: a share of the smaller mean, or points of a rate."
        ),
    ] = 0.05,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="solved, damage, price, first_round, cost, tokens or seconds; may be given more than once; all, if not given."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=N",
            help="How many effects more may be damaged so, as in doubled=1; may be given more than once; none by default.",
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Refuse runs that do not hold the same.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables as Markdown, with all columns, for a comment or a page.")
    ] = False,
    by_scorecard: Annotated[
        bool, typer.Option("--scorecard", help="Compare the runs' recovery scorecards; the default for two JSON files.")
    ] = False,
    by_parameters: Annotated[
        bool, typer.Option("--parameters", help="Show only in which parameters the two runs differ, and exit with 0.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Write the verdict as a JUnit file too, for a CI server.")] = None,
) -> None:
    """Ask whether run B is worse than run A.

    Exits with 0: better, equal or no worse; 1: worse; 3: inconclusive, no better, or a trade-off; 2: cannot be asked.

    Quality comes before cost: first what is solved and damaged; then what is spent: one failure's price (or its first round, if
    that is not measured), dollars of the whole trial (or its tokens, if the config has no prices), and seconds. Each measure is
    taken over all arms first; an arm by itself must pass an exact test as well, after Holm's correction.

    worse: B is worse in a measure, better in none of the same rank, and what decides before is settled. better: the contrary.
    trade-off: better in one and worse in another of the same rank. equal, no worse, no better: no measure decides, and this
    holds of each. inconclusive: anything else. If A and B change places, so do worse and better.

    In worlds, a pair of trials in which B damages more effects is a counterexample, and B is worse, if no reply of either is
    live. --allow lets a number of them pass.

    What both runs share is compared: packs, fault plans, architectures, models, repetitions. The rest is named and left out.
    Two runs with one model each, or one architecture each, are compared across these. For a run with several models, `bench
    compare RUN --models A B` compares two.

    Scorecards are compared by what finishes right and what is damaged, in the control and for each kind of failure.
    Two probes are compared cell by cell: worse if a cell has damage in B that it lacks in A.

    For example: bench compare before after --measure tokens
    """
    from bench.read.compare.verdict import allowed_damage  # noqa: PLC0415

    if by_parameters:
        _show_parameters(run_a, run_b, as_json, as_markdown)
        return
    form = COMPARISONS["scorecard"] if by_scorecard else next((part for part in COMPARISONS if part.is_file(run_a)), None)
    if form:
        if models or architectures or measure:
            raise ConfigError("--models, --architectures and --measure are not for scorecards; see `bench scorecard --system`")
        if run_b is None:
            raise ConfigError(f"compare {run_a} with what? Give a second {form.name} or run")
        compared = form.compared(run_a, run_b, margin, whole, allowed_damage(allow or ()))
    elif run_b and are_probes(folder_of(run_a), folder_of(run_b)):
        compared = _compared_probes(folder_of(run_a), folder_of(run_b))
    else:
        bounds = _Bounds(margin, _measures(measure), whole, allowed_damage(allow or ()))
        compared = _compared_runs(run_a, run_b, models, architectures, bounds)
    if as_json:
        out.print(compared.json)
    else:
        _print(compared, as_markdown)
    if junit:
        line = compared.lines[-1]
        problem = line if EXIT_CODES[compared.verdict] else ""
        write_junit(junit, "bench compare", [JunitCase(run_a, f"{run_b or run_a} is no worse", problem)])
    raise typer.Exit(EXIT_CODES[compared.verdict])


def _show_parameters(a: str, b: str | None, as_json: bool, as_markdown: bool) -> None:
    from bench.read.compare.parameters import parameters_table, parameters_that_differ  # noqa: PLC0415
    from bench.record.reading import read_manifest  # noqa: PLC0415

    if b is None:
        raise ConfigError("--parameters: give two runs")
    differing = parameters_that_differ(read_manifest(folder_of(a)), read_manifest(folder_of(b)))
    text = json.dumps({key: {"a": first, "b": second} for key, (first, second) in differing.items()}, indent=2)
    tables = (parameters_table(differing, name_of(Path(a)), name_of(Path(b))),) if differing else ()
    line = f"parameters that differ: {len(differing)}"
    if as_json:
        out.print(text)
    else:
        _print(Compared("equal", tables, text, (line,)), as_markdown)


def _compared_probes(a: Path, b: Path) -> Compared:
    from bench.probe.read.compare import compare_probes  # noqa: PLC0415
    from bench.probe.read.run import read_probe  # noqa: PLC0415

    compared = compare_probes(read_probe(a), read_probe(b))
    tables = (compared.table,) if compared.table.rows else ()
    return Compared(compared.verdict, tables, compared.json, (f"{b.name} against {a.name}: {compared.line}",))


def _compared_runs(
    a: str,
    b: str | None,
    models: tuple[str, str] | None,
    architectures: tuple[str, str] | None,
    bounds: _Bounds,
) -> Compared:
    """Compare two runs, or two models or architectures of one run."""
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.read.analysis.pairing import only  # noqa: PLC0415
    from bench.read.compare.compare import compare  # noqa: PLC0415
    from bench.read.compare.compare_table import WIDE, arms_table, as_json, compare_table, dollars_line  # noqa: PLC0415

    picked = [pair for pair in (models, architectures) if pair]
    if not (b or picked):
        raise ConfigError("compare what? Give a second run, or two of this run: --models A B, or --architectures A B")
    first = load_run(folder_of(a))
    second = load_run(folder_of(b)) if b else first
    if models:
        first, second = only(first, "model", models[0]), only(second, "model", models[1])
    if architectures:
        first, second = only(first, "architecture", architectures[0]), only(second, "architecture", architectures[1])
    comparison = compare(first, second, *bounds)
    sides = [", ".join((Path(run).name, *(pair[n] for pair in picked))) for n, run in enumerate((a, b or a))]
    return Compared(
        comparison.verdict,
        (arms_table(comparison), compare_table(comparison)),
        as_json(comparison),
        (*filter(None, [dollars_line(comparison)]), f"{sides[1]} against {sides[0]}: {comparison.summary}"),
        WIDE,
    )


def _print(compared: Compared, as_markdown: bool) -> None:
    """Print tables and the lines below them. Only Markdown has all columns."""
    from bench.read.render.labels import listed  # noqa: PLC0415
    from bench.read.render.table import markdown  # noqa: PLC0415

    if as_markdown:
        out.print("\n".join(map(markdown, compared.tables)))
    else:
        wrapped = Terminal(wrapped=True)
        for table in compared.tables:
            wrapped.show_report_table(table.without(compared.wide))
            wrapped.print("\n".join(f"- {note}" for note in table.footer), end="\n\n")
        if compared.wide:
            wide = listed(compared.wide, len(compared.wide))
            wrapped.print(f"With --markdown the tables also have the columns {wide}. With --json a program reads all values.")
    for line in compared.lines:
        out.print(line)


def _measures(names: list[str] | None) -> tuple[Criterion, ...]:
    from bench.read.compare.compare import CRITERIA  # noqa: PLC0415

    for name in names or ():
        if name not in CRITERIA:
            raise ConfigError(f"unknown measure '{name}': {nearest(name, CRITERIA)}")
    return tuple(criterion for criterion in CRITERIA if not names or criterion in names)
