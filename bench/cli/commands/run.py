"""`bench run`: run a config."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import PacksOption, UnguardedOption
from bench.cli.commands.completion import model_names, pack_names, plan_names
from bench.cli.commands.report import write_report
from bench.cli.commands.running import concurrent_trials, print_process_count, run_missing_trials, show_preview
from bench.cli.commands.setup import (
    OTHER_CODE,
    cache_from,
    chosen_models,
    open_run,
    reply_source_lines,
    run_name,
    with_concurrency,
)
from bench.cli.remembered import remember
from bench.cli.terminal import Terminal, print_left_out
from bench.common.paths import PACKS, REPORTS, RESULTS, named
from bench.read.report.studies import STUDIES, require_known
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.budget import Budget, Spending
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.model_entries import MODELS
from bench.run.experiment.portion import Portion, parse_repetitions, parse_shard, restrict_to
from bench.run.experiment.preview import lines_on_missing_replies
from bench.run.experiment.session import Session
from bench.run.experiment.untrusted import permission
from bench.run.trial.effects import EFFECTS

out, err = Terminal(), Terminal(stderr=True)


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
        typer.Option(help="Run only this architecture; may be given more than once."),
    ] = None,
    plan: Annotated[
        list[str] | None,
        typer.Option(autocompletion=plan_names, help="Run only this fault plan; may be given more than once."),
    ] = None,
    repetitions: Annotated[
        str | None,
        typer.Option(metavar="N|N-M", help="The number of repetitions, or a range such as 6-10 for `bench more merge`."),
    ] = None,
    instances: Annotated[
        int | None,
        typer.Option(min=1, help="Run this many instances of each pack, chosen by the config's seed."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="N/M", help="Run this shard of the trials; `bench more merge` joins shards.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The run's folder under results/.")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="A label of the run, for `bench runs --tag`; may be given more than once."),
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A note on the run, which `bench runs` shows.")] = "",
    cached: Annotated[
        list[str] | None,
        typer.Option("--cache-from", help="Reuse this run's replies and seconds; call the model only for other requests."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="The number of calls that a replayed model, or PROVIDER/NAME, answers at a time.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, help="Stop between calls after this many tokens of prompts and replies.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many dollars are spent, by the prices in the config.")
    ] = None,
    max_minutes: Annotated[float | None, typer.Option(min=0, help="Stop after this many minutes.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the planned trials, tokens and cost; run nothing.")] = False,
    aside: Annotated[bool, typer.Option("--set-aside", help="Rename a folder with a run of another config or code.")] = False,
    goes_on: Annotated[
        bool, typer.Option(OTHER_CODE, help="Continue a run that other code recorded; the run and its reports say so.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Run this many trials at a time, if the agents are commands; 2, if not given."),
    ] = None,
    early: Annotated[
        bool, typer.Option("--stop-early", help="Stop when 20 trials of an arm ended in the same way without being solved.")
    ] = False,
    then_report: Annotated[bool, typer.Option("--report", help="Write the report after the run.")] = False,
    unguarded: UnguardedOption = False,
    scenarios: PacksOption = PACKS,
) -> None:
    """Measure what failures cost the agents that a config names.

    The same command continues a stopped run.

    For example: bench run configs/smoke.toml --report
    """
    models, model_entries = chosen_models(model or ())
    model_entries = with_concurrency(model_entries, concurrency)
    first, last = parse_repetitions(repetitions)
    portion = Portion(parse_shard(shard), first)
    overrides = {
        "models": models,
        "scenarios": scenario,
        "architectures": architecture,
        "plans": plan,
        "repetitions": last,
        "instances": instances,
    }
    settings = load_config(config, overrides, model_entries)
    require_known(settings.study)
    settings = cache_from(settings, cached or ())
    matrix = restrict_to(build_matrix(settings, scenarios, our_codebase().digest), portion)
    print_left_out(err, ARCHITECTURES, MODELS, EFFECTS, STUDIES)
    at_a_time = concurrent_trials(workers, matrix)
    if dry_run:
        show_preview(out, matrix)
        print_process_count(out, matrix, at_a_time)
        for line in lines_on_missing_replies(matrix, permission(matrix, unguarded).graders) if model_entries else ():
            out.print(line)
        return
    for line in reply_source_lines(matrix):
        out.print(line)
    spending = Spending(Budget(max_tokens, max_cost, max_minutes), matrix.models)
    folder, permitted = named(RESULTS, name or run_name(settings) + portion.suffix), permission(matrix, unguarded)
    session = Session(spending, out.print, permitted, at_a_time)
    writer = open_run(out, folder, matrix, aside, permitted, tag or (), note, goes_on)
    for target in (folder, config):
        remember(target, scenarios)
    if writer:
        print_process_count(out, matrix, at_a_time)
    try:
        has_no_errors = not writer or run_missing_trials(matrix, writer, session, out, err, early=early)
    except typer.Exit:
        if then_report and writer and writer.trials:
            err.print(f"no report is written; of what is recorded it is made by: bench report {folder.name}")
        raise
    if then_report:
        write_report([folder], REPORTS / folder.name)
    else:
        has_world = any(scenario.environment for scenario in matrix.scenarios.values())
        out.print(f"next: {f'bench scorecard {folder.name}, ' if has_world else ''}bench report {folder.name}")
    if not has_no_errors:
        raise typer.Exit(1)
