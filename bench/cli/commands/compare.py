"""The command `bench compare`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from bench.cli.commands.report_tables import show_report_table
from bench.cli.junit import JunitCase, junit_on_error, write_junit
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError
from bench.common.paths import folder_of, name_of
from bench.record.reading import are_probes

# Modules that read results import pandas and scipy. No other command should wait for that, so functions import them.
if TYPE_CHECKING:
    from bench.read.render.table import Table

EXIT_CODES = {"equal": 0, "no worse": 0, "better": 0, "worse": 1, "trade-off": 3, "undecided": 3}
"""The exit code of each verdict. 2 is left to a user's mistake."""
JUNIT_ENDS: dict[int, Literal["failure", "skipped"]] = {1: "failure", 3: "skipped"}

out = Terminal()


class ComparedCase(NamedTuple):
    """A question of a comparison, with its own verdict and the reason for the verdict."""

    group: str
    question: str
    verdict: str
    reason: str


class ComparisonOutput(NamedTuple):
    """The result of a comparison, with the verdict of `bench compare`.

    tables   the tables for people
    json     the result for a program
    lines    the lines above the tables; the first line has the verdict
    wide     the titles of columns that are too wide for a terminal
    cases    the questions that decide the verdict, and further questions
    """

    verdict: str
    tables: tuple[Table, ...]
    json: str
    lines: tuple[str, ...]
    wide: tuple[str, ...] = ()
    cases: tuple[ComparedCase, ...] = ()


def compare(
    run_a: Annotated[str, typer.Argument(help="The run to compare with: its name under results/, or its folder.")],
    run_b: Annotated[str | None, typer.Argument(help="The run to judge; RUN_A itself, if not given.")] = None,
    models: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Compare model A of RUN_A with model B of RUN_B.")
    ] = None,
    architectures: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Compare architecture A of RUN_A with B of RUN_B.")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=MARGIN]",
            help="A measure that decides, and how much worse B may be: solved, damage, price, first_round, cost, tokens or "
            "seconds, as in tokens=0.2; may be given more than once.",
        ),
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="An earlier run like RUN_A, to measure chance; may be given more than once."),
    ] = None,
    by: Annotated[Literal["arm"] | None, typer.Option(help="Show each arm too.")] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=N",
            help="Permit this many more damaged effects of a kind, as in doubled=1; may be given more than once.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Refuse to compare runs of which one lacks something that the other has.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables as Markdown, with all columns, for a comment or a page.")
    ] = False,
    by_parameters: Annotated[
        bool, typer.Option("--parameters", help="Show only the parameters in which the two runs differ, and exit with 0.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Write the verdict as a JUnit file too, for a CI server.")] = None,
) -> None:
    """Test whether run B is worse than run A, as a gate in CI.

    Exit codes: 0 better, equal or no worse; 1 worse; 2 the runs cannot be compared; 3 undecided, or a trade-off.

    The gate is a few measures, each taken over all arms together: damage (margin 0), solved (5 points), tokens (10%) and the
    price of a failure (10%), or the measures that --measure names. All other measures are shown, and decide nothing; --by arm
    shows each arm.

    worse: B is worse by more than the margin, and an exact test says that this is no chance. no worse: the loss is bounded
    within the margin. Otherwise the output says how large a loss these pairs would have shown. If B lacks an arm, or a tenth of
    the pairs, it cannot be better than undecided.

    trade-off: B is worse in one measure and better in another, and both are of quality (damage, solved) or both of cost; or B
    costs more and is better. If B is worse in quality and better in no other measure of quality, B is worse, whatever it costs.

    In worlds without live replies, one pair of trials in which B damages more effects of a kind makes B worse, unless --allow
    permits the damage.

    The command compares the packs, fault plans, architectures, models and repetitions that both runs have, and names what it
    leaves out. If each run has one model, or one architecture, the two are compared. For a run with several models, `bench
    compare RUN --models A B` compares two.

    Two probes are compared cell by cell: B is worse if a cell has damage in B and none in A.

    For example: bench compare before after --measure solved --measure tokens=0.2
    """
    if by_parameters:
        _show_parameters(run_a, run_b, as_json, as_markdown)
        return
    sides = (models, architectures)

    def ask() -> ComparisonOutput:
        return _compare(run_a, run_b, sides, measure or (), whole, allow or (), history or (), by == "arm")

    compared = _compare_with_junit(junit, f"{run_b or run_a} against {run_a}", ask) if junit else ask()
    if as_json:
        out.print(compared.json)
    else:
        _print_output(compared, as_markdown)
    raise typer.Exit(EXIT_CODES[compared.verdict])


def _compare(
    run_a: str,
    run_b: str | None,
    sides: tuple[tuple[str, str] | None, tuple[str, str] | None],
    measures: Sequence[str],
    whole: bool,
    allow: Sequence[str],
    history: Sequence[str],
    by_arm: bool,
) -> ComparisonOutput:
    """Compare two probes, or two runs."""
    from bench.read.compare.compare import gate_of  # noqa: PLC0415
    from bench.read.compare.verdict import allowed_damage  # noqa: PLC0415

    gate, allowed = gate_of(measures), allowed_damage(allow)
    if run_b and are_probes(folder_of(run_a), folder_of(run_b)):
        return _compare_probes(folder_of(run_a), folder_of(run_b))
    return _compare_runs(run_a, run_b, sides, (gate, whole, allowed), history, by_arm)


def _compare_with_junit(path: Path, group: str, compare_runs: Callable[[], ComparisonOutput]) -> ComparisonOutput:
    """Compare, and write a JUnit file: a case for each measure of the gate and for each arm, or one case with the reason why
    the runs cannot be compared."""
    with junit_on_error(path, "bench compare", group, "is no worse"):
        compared = compare_runs()
    cases = compared.cases or (ComparedCase(group, "is no worse", compared.verdict, "\n".join(compared.lines)),)
    case_results = [(case, JUNIT_ENDS.get(EXIT_CODES.get(case.verdict, 0))) for case in cases]
    write_junit(
        path,
        "bench compare",
        [
            JunitCase(case.group, case.question, case.reason if junit_result else "", junit_result or "failure")
            for case, junit_result in case_results
        ],
    )
    return compared


def _show_parameters(run_a: str, run_b: str | None, as_json: bool, as_markdown: bool) -> None:
    """Print the parameters in which the two runs differ."""
    from bench.read.compare.parameters import parameters_table, parameters_that_differ  # noqa: PLC0415
    from bench.record.reading import read_manifest  # noqa: PLC0415

    if run_b is None:
        raise ConfigError("--parameters: give two runs")
    differing = parameters_that_differ(read_manifest(folder_of(run_a)), read_manifest(folder_of(run_b)))
    text = json.dumps({key: {"a": value_a, "b": value_b} for key, (value_a, value_b) in differing.items()}, indent=2)
    tables = (parameters_table(differing, name_of(Path(run_a)), name_of(Path(run_b))),) if differing else ()
    line = f"parameters that differ: {len(differing)}"
    if as_json:
        out.print(text)
    else:
        _print_output(ComparisonOutput("equal", tables, text, (line,)), as_markdown)


def _compare_probes(folder_a: Path, folder_b: Path) -> ComparisonOutput:
    """Compare two probes cell by cell."""
    from bench.probe.read.compare import compare_probes  # noqa: PLC0415
    from bench.probe.read.run import read_probe  # noqa: PLC0415

    compared = compare_probes(read_probe(folder_a), read_probe(folder_b))
    tables = (compared.table,) if compared.table.rows else ()
    return ComparisonOutput(
        compared.verdict, tables, compared.json, (f"{folder_b.name} against {folder_a.name}: {compared.line}",)
    )


def _compare_runs(
    run_a: str,
    run_b: str | None,
    sides: tuple[tuple[str, str] | None, tuple[str, str] | None],
    bounds: tuple[Mapping[str, float], bool, Mapping[str, int]],
    history: Sequence[str],
    by_arm: bool,
) -> ComparisonOutput:
    """Compare two runs, or two models or architectures of one run.

    sides    the pairs of --models and --architectures
    bounds   the margins of the gate's measures, whether the runs must hold the same, and the allowed damage
    """
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.read.analysis.pairing import COUNTERPARTS, part_of_run  # noqa: PLC0415
    from bench.read.compare.compare import compare  # noqa: PLC0415
    from bench.read.compare.compare_table import WIDE_COLUMNS, as_json, cases_of, compare_table, sentences  # noqa: PLC0415

    chosen_pairs = [pair for pair in sides if pair]
    if not (run_b or chosen_pairs):
        raise ConfigError("compare what? Give a second run, or two of this run: --models A B, or --architectures A B")
    data_a, *earlier_runs = (load_run(folder_of(run)) for run in (run_a, *history))
    data_b = load_run(folder_of(run_b)) if run_b else data_a
    for column, pair in zip(COUNTERPARTS, sides, strict=True):
        if pair:
            value_a, value_b = pair
            data_a, *earlier_runs = (part_of_run(run, column, value_a) for run in (data_a, *earlier_runs))
            data_b = part_of_run(data_b, column, value_b)
    comparison = compare(data_a, data_b, *bounds, earlier_runs)
    name_a = ", ".join((Path(run_a).name, *(value_a for value_a, _ in chosen_pairs)))
    name_b = ", ".join((Path(run_b or run_a).name, *(value_b for _, value_b in chosen_pairs)))
    verdict, *rest = sentences(comparison)
    return ComparisonOutput(
        comparison.verdict,
        (compare_table(comparison, by_arm),),
        as_json(comparison),
        (f"{name_b} against {name_a}: {verdict}", *rest),
        WIDE_COLUMNS,
        tuple(ComparedCase(*case) for case in cases_of(comparison)),
    )


def _print_output(compared: ComparisonOutput, as_markdown: bool) -> None:
    """Print the lines, and the tables below the lines. Only the Markdown form has all columns."""
    from bench.read.render.labels import join_names  # noqa: PLC0415
    from bench.read.render.table import markdown  # noqa: PLC0415

    for line in compared.lines:
        out.print(line)
    if compared.tables:
        out.print()
    if as_markdown:
        out.print("\n".join(map(markdown, compared.tables)))
    else:
        wrapped = Terminal(wrapped=True)
        for table in compared.tables:
            show_report_table(wrapped, table.without(compared.wide))
            wrapped.print("\n".join(f"- {note}" for note in table.footer), end="\n\n")
        if compared.wide:
            wide_columns = join_names(compared.wide, len(compared.wide))
            wrapped.print(
                f"With --markdown the tables also have the columns {wide_columns}. With --json a program reads all values."
            )
