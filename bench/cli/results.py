"""The commands `bench compare` and `bench trace`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import ConfigError
from bench.paths import folder_of

# What reads results imports pandas and scipy, for which no other command should wait, so it is imported where it is used.
if TYPE_CHECKING:
    from bench.analysis.claims.trace import TracedValue
    from bench.analysis.compare import Criterion

EXIT_CODES = {"no worse": 0, "worse": 1, "trade-off": 3, "inconclusive": 3}
"""2 is for a user's mistake."""

RunName = Annotated[str, typer.Argument(help="A run's name under results/, or its folder.")]


def compare(
    run_a: Annotated[str, typer.Argument(help="What to compare with: a run's name under results/, or its folder.")],
    run_b: Annotated[str, typer.Argument(help="The run that is judged.")],
    margin: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="How much worse is no worse: a share, of rates points.")
    ] = 0.05,
    measure: Annotated[list[str] | None, typer.Option(help="tokens, seconds or solved; all three, if not given.")] = None,
    shared: Annotated[bool, typer.Option("--shared", help="Compare what the runs share, where that is not all.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Is RUN_B worse than RUN_A? Exits with 0: no worse, 1: worse, 2: cannot be asked, 3: inconclusive, or a trade-off.

    What is solved comes first: B is worse where it solves fewer, however cheap it is; where it solves more and takes more
    tokens or seconds, that is a trade-off for you to decide. With --measure tokens alone, only tokens decide.

    Two runs with one model each, or with one architecture each, are compared as they are, whatever these are called.
    """
    from bench.analysis.compare import compare as compared  # noqa: PLC0415
    from bench.analysis.frames import load_run  # noqa: PLC0415
    from bench.render.table import markdown  # noqa: PLC0415
    from bench.report import compare_table  # noqa: PLC0415

    found = compared(load_run(folder_of(run_a)), load_run(folder_of(run_b)), margin, _measures(measure), shared)
    typer.echo(compare_table.as_json(found) if as_json else markdown(compare_table.compare_table(found)))
    if not as_json:
        typer.echo(f"{Path(run_b).name} against {Path(run_a).name}: {found.summary}")
    raise typer.Exit(EXIT_CODES[found.verdict])


def _measures(names: list[str] | None) -> tuple[Criterion, ...]:
    from bench.analysis.compare import CRITERIA  # noqa: PLC0415
    from bench.errors import nearest  # noqa: PLC0415

    for name in names or ():
        if name not in CRITERIA:
            raise ConfigError(f"unknown measure '{name}': {nearest(name, CRITERIA)}")
    return tuple(one for one in CRITERIA if not names or one in names)


def trace(run: RunName, claim: Annotated[str, typer.Argument(help="A claim's id, from the table of verdicts.")]) -> None:
    """List the trials and calls that a claim's number came from."""
    from bench.analysis.claims.evidence import Missing  # noqa: PLC0415
    from bench.analysis.claims.published import load_published  # noqa: PLC0415
    from bench.analysis.claims.trace import claim_named  # noqa: PLC0415
    from bench.analysis.claims.trace import trace as traced  # noqa: PLC0415
    from bench.analysis.claims.verdicts import judge_all  # noqa: PLC0415
    from bench.analysis.frames import load_run  # noqa: PLC0415
    from bench.render.labels import model_label  # noqa: PLC0415
    from bench.report.claims_table import verdict_line  # noqa: PLC0415

    published, loaded = load_published(), load_run(folder_of(run))
    wanted = claim_named(published, claim)
    judged = {one.model: one for one in judge_all(loaded, published) if one.claim.id == wanted.id}
    for model, found in traced(loaded, wanted):
        typer.echo(f"{model_label(loaded, model)}\n{verdict_line(judged[model])}\n  {judged[model].reason}; {wanted.source}")
        typer.echo(f"  what is compared: {wanted.compares}, since {wanted.why}")
        for one in () if isinstance(found, Missing) else found:
            typer.echo("\n".join(_lines(one)))


def _lines(one: TracedValue) -> list[str]:
    trial, item = one.trial, one.item
    instance = f" {item.instance}" if item.instance else ""
    arm = f"{trial['scenario']}{instance} {trial['architecture']} {trial['fault']}"
    place = f"{arm} repetition {item.repetition}: {trial['outcome']}"
    told = (
        f"    call {call['call']}  {call['subtask']}  attempt {call['attempt']} try {call['try']}  {call['cause']}  "
        f"{call['account']}  {call['tokens_in']} in, {call['tokens_out']} out  {call['verdict']}"
        for call in one.calls
    )
    return [f"  {item.trial}  {place}  {item.side} = {item.value:g}", *told]
