"""The command `bench`, as a person types it. Each command calls one function of the package and prints what it returns."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import add_command, app_of, group_of, run_command
from bench.cli.command_part import COMMANDS
from bench.cli.completion import model_names, pack_names, plan_names, run_names
from bench.cli.doctor import WITHOUT_THEM, guards_table, versions_table
from bench.cli.listing import kind_names, print_parts, tell_left_out
from bench.cli.probed import show_probe
from bench.cli.remembered import packs_of, remember
from bench.cli.running import AT_A_TIME, engine_of, run_to_its_end, show_preview, tell_processes, watched
from bench.cli.setup import (
    OPTION,
    PacksOption,
    UnguardedOption,
    cache_from,
    chosen_models,
    declared,
    open_run,
    run_name,
    whose_replies,
)
from bench.cli.terminal import Terminal
from bench.common.paths import PACKS, REPORTS, RESULTS, folder_of, name_of, named
from bench.common.registry import Unusable, foreign_code
from bench.read.report.studies import STUDIES, require_known
from bench.record.reading import are_probes, uncollected
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.budget import Budget, Spending
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.model_entries import MODELS
from bench.run.experiment.portion import Portion, portioned, repetitions_in, shard_in
from bench.run.experiment.preview import unanswered
from bench.run.experiment.regrade import regrade as regrade_run
from bench.run.experiment.session import Session
from bench.run.experiment.untrusted import permission
from bench.run.sandbox import guards
from bench.run.trial.effects import EFFECTS

app = app_of()
out, err = Terminal(), Terminal(stderr=True)


def list_(
    kind: Annotated[str | None, typer.Argument(autocompletion=kind_names, help="One kind of part, such as effects.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: of each kind its names.")] = False,
    scenarios: PacksOption = PACKS,
) -> None:
    """List what a config can name: packs, models, faults, and more.

    Architectures, metrics, tables, studies and export forms are listed too, and what other packages bring.

    For example: bench list effects
    """
    print_parts(out, err, scenarios, kind, as_json)


def doctor() -> None:
    """Check whether this machine can run models' code safely.

    It shows the guards of the sandbox and all versions. Exits with 1 if a guard is missing.

    For example: bench doctor
    """
    guarded = guards()
    out.show(guards_table(guarded))
    out.show(versions_table())
    if guarded.missing:
        lacking = ", ".join(guard.name for guard in guarded.missing)
        out.print(f"Not all guards are in force: {lacking}. {WITHOUT_THEM}")
    raise typer.Exit(1 if guarded.missing else 0)


def run(
    config: Annotated[Path, typer.Argument(help="A config, such as configs/smoke.toml.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=model_names,
            help="Use this model of the config, or PROVIDER/NAME, or recorded:RUN; may be given more than once.",
        ),
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(autocompletion=pack_names, help="Run this pack; may be given more than once."),
    ] = None,
    architecture: Annotated[
        list[str] | None,
        typer.Option(help="Run this architecture alone; may be given more than once."),
    ] = None,
    plan: Annotated[
        list[str] | None,
        typer.Option(autocompletion=plan_names, help="Run this fault plan alone; may be given more than once."),
    ] = None,
    repetitions: Annotated[
        str | None,
        typer.Option(metavar="N|N-M", help="How many repetitions, or a range such as 6-10 for `bench more merge`."),
    ] = None,
    instances: Annotated[
        int | None,
        typer.Option(min=1, help="Run this many instances of each pack, drawn by the config's seed."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="N/M", help="Run this shard of the trials; `bench more merge` joins shards.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The run's folder under results/.")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="A word to find the run by in `bench runs`; may be given more than once."),
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A line on the run, which `bench runs` shows.")] = "",
    cached: Annotated[
        list[str] | None,
        typer.Option("--cache-from", help="Reuse the replies of this run, with their seconds, and ask only for the rest."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="How many calls at a time a replayed model, or PROVIDER/NAME, takes.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, help="Stop between calls once this many tokens are read and written.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Stop once this many dollars are spent, by the prices in the config.")
    ] = None,
    max_minutes: Annotated[float | None, typer.Option(min=0, help="Stop after this many minutes.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the matrix, tokens and cost ahead; run nothing.")] = False,
    aside: Annotated[bool, typer.Option("--set-aside", help="Rename a folder of another experiment or code.")] = False,
    goes_on: Annotated[
        bool, typer.Option(OPTION, help="Go on with a run that other code recorded; the run and its reports say so.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option(metavar="ray|ADDRESS", help="Run the trials on Ray, here or at ray://HOST:PORT.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="How many trials of agents that are commands, or of Ray, run at a time; 2, if not given."),
    ] = None,
    early: Annotated[
        bool, typer.Option("--stop-early", help="Stop once 20 trials of an arm end alike without being solved.")
    ] = False,
    then_report: Annotated[bool, typer.Option("--report", help="Write the report afterwards.")] = False,
    on_page: Annotated[
        bool, typer.Option("--watch", help="Show a page of the run while it goes on, as `bench watch` does.")
    ] = False,
    unguarded: UnguardedOption = False,
    scenarios: PacksOption = PACKS,
) -> None:
    """Measure what failures cost the agents that a config names.

    The same command continues a stopped run.

    For example: bench run configs/smoke.toml --report
    """
    models, added = chosen_models(model or ())
    added = declared(added, concurrency)
    first, last = repetitions_in(repetitions)
    portion = Portion(shard_in(shard), first)
    given = {
        "models": models,
        "scenarios": scenario,
        "architectures": architecture,
        "plans": plan,
        "repetitions": last,
        "instances": instances,
    }
    settings = load_config(config, given, added)
    require_known(settings.study)
    settings = cache_from(settings, cached or ())
    matrix = portioned(build_matrix(settings, scenarios, our_codebase().digest), portion)
    tell_left_out(err, ARCHITECTURES, MODELS, EFFECTS, STUDIES)
    at_a_time = workers or AT_A_TIME
    if dry_run:
        show_preview(out, matrix)
        tell_processes(out, matrix, at_a_time)
        for line in unanswered(matrix, permission(matrix, unguarded).graders) if added else ():
            out.print(line)
        return
    for line in whose_replies(matrix):
        out.print(line)
    spending = Spending(Budget(max_tokens, max_cost, max_minutes), matrix.models)
    folder, permitted = named(RESULTS, name or run_name(settings) + portion.suffix), permission(matrix, unguarded)
    session = Session(spending, out.print, permitted, at_a_time)
    runs = engine_of(engine, workers, matrix, scenarios)
    writer = open_run(out, folder, matrix, aside, permitted, tag or (), note, goes_on)
    for place in (folder, config):
        remember(place, scenarios)
    if writer and engine is None:
        tell_processes(out, matrix, at_a_time)
    with watched(folder) if on_page else nullcontext():
        try:
            went_well = not writer or run_to_its_end(matrix, writer, session, out, err, early=early, engine=runs)
        except typer.Exit:
            if then_report and writer and writer.trials:
                err.print(f"no report is written; of what is recorded it is made by: bench report {folder.name}")
            raise
    if then_report:
        _report([folder], REPORTS / folder.name)
    else:
        acts = any(scenario.environment for scenario in matrix.scenarios.values())
        out.print(f"next: {f'bench scorecard {folder.name}, ' if acts else ''}bench report {folder.name}")
    if not went_well:
        raise typer.Exit(1)


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            autocompletion=run_names, help="A run's name under results/, or its folder; several stand side by side."
        ),
    ],
    to: Annotated[Path | None, typer.Option(help="Where to write; reports/RUN, or reports/RUN+RUN, if not given.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print all findings, limits and verdicts of the report.")
    ] = False,
) -> None:
    """Make a page of runs to read: what came out, tables, figures.

    A report of several runs shows what they share: the seed, packs that ask the same, and fault plans with the same text. Their
    trials then met the same faults and are paired. What not all runs have is named and left out. An architecture or a model
    that differs in a later run, or gave other results there, is shown as `NAME (RUN)`. A probe gets its own page.

    For example: bench report smoke-simulated
    """
    folders = [folder_of(run) for run in runs]
    if are_probes(*folders):
        for folder in folders:
            show_probe(out, folder, to or named(REPORTS, name_of(folder)))
        return
    _report(folders, to or named(REPORTS, "+".join(map(name_of, folders))), verbose)


@uncollected()  # of a report only its figures leave cycles, and they are few
def _report(folders: list[Path], target: Path, verbose: bool = False) -> None:
    # Here, because these import pandas and matplotlib, and no other command should wait for that.
    from bench.read.analysis.arms import shortfalls  # noqa: PLC0415
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.read.analysis.merge import merge  # noqa: PLC0415
    from bench.read.analysis.metrics import METRICS  # noqa: PLC0415
    from bench.read.report.figures import FIGURES  # noqa: PLC0415
    from bench.read.report.report import report_of  # noqa: PLC0415
    from bench.read.report.tables import TABLES  # noqa: PLC0415
    from bench.record.files import write_files  # noqa: PLC0415
    from bench.rerun.world_views import WorldViews  # noqa: PLC0415

    run = merge([load_run(folder, check=True) for folder in folders])
    made = report_of(run, WorldViews(packs_of(PACKS, folders[0], err)))
    written = write_files(target, made.files)
    tell_left_out(err, METRICS, TABLES, FIGURES, STUDIES)
    if verbose:
        out.print("\n".join((*run.notes, made.summary.ran, *(f"- {finding.text}" for finding in made.summary.findings))))
        out.print("What this does not show:")
        out.print("\n".join(f"  - {limit}" for limit in made.summary.limits))
        out.print("\n".join(made.verdicts))
    else:
        out.print("\n".join(made.summary.lines(run.notes)))
    for line in shortfalls(run):
        out.print(line)
    out.print(f"{len(written)} files; open {target / 'report.html'}")
    if "tables/world_damage.md" in made.files:
        out.print(f"next: bench scorecard {' '.join(f.name if f.parent == RESULTS else str(f) for f in folders)}")


def regrade(
    runs: Annotated[list[str], typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder.")],
    scenarios: PacksOption = PACKS,
    unguarded: UnguardedOption = False,
) -> None:
    """Grade the stored answers of runs anew; no model is asked.

    The packs' present graders are used, and the report says so.

    For example: bench more regrade smoke-simulated
    """
    for run in runs:
        folder = folder_of(run)
        for done in regrade_run(folder, packs_of(scenarios, folder, err), unguarded):
            graded = f"{done.answers} answers graded anew by the grader {done.graded_by}, {done.changed} grades changed"
            out.print(f"{run}: {done.scenario}: {graded}")


def add_commands(to: typer.Typer) -> None:
    """Add all commands, ours first. A command of another package that cannot be used is left out."""
    for part in COMMANDS:
        try:
            if part.package:
                with foreign_code(part.home):
                    add_command(alone := typer.Typer(), part.name, part.load(part.path))
                    typer.main.get_command(alone)  # typer reads a function's arguments here, for all commands together
            add_command(to, part.name, part.load(part.path) if part.path else group_of(part.help))
        except Unusable as error:
            COMMANDS.leave_out(part, str(error))


add_commands(app)


def main() -> None:
    """Run the command. A user's mistake is one line on standard error and exit code 2."""
    run_command(app, lambda: tell_left_out(err, COMMANDS))
