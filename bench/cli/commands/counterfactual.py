"""The commands `bench explain shrink` and `bench explain search`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import PacksOption
from bench.cli.commands.completion import run_names
from bench.cli.remembered import option_of, packs_of
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError
from bench.common.files import write_whole
from bench.common.paths import PACKS, folder_of
from bench.record.config import FAULT_FREE
from bench.rerun.config_of import config_text
from bench.rerun.rerun import RerunArm, rerunnable_trial
from bench.rerun.search import SearchResult, plan_with
from bench.rerun.search import search as search_schedules
from bench.rerun.shrink import PlacedStrike, ShrinkResult
from bench.rerun.shrink import shrink as shrink_trial
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.trial import loop
from bench.run.trial.faults import Fault, FaultPlan, Strike

out, err = Terminal(), Terminal(stderr=True)


def shrink(
    run: Annotated[str, typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder.")],
    trial: Annotated[
        str, typer.Option(help="The trial: its id or the beginning of its id, or `worst`, the trial with most damage.")
    ],
    damage: Annotated[
        str,
        typer.Option(help="The kind of damage that has to occur again, such as doubled; if not given, each kind of the trial."),
    ] = "",
    to: Annotated[Path | None, typer.Option(help="The config to write; RUN-shrunk.toml, if not given.")] = None,
    scenarios: PacksOption = PACKS,
) -> None:
    """Find the fewest faults that still break a trial.

    The trial is run again with the same random choices and fewer of its faults, until every remaining fault is needed. No model
    behind an endpoint is called: a recorded model answers from the run. The command writes a config with the remaining faults.

    For example: bench explain shrink RUN --trial worst
    """
    folder = folder_of(run)
    packs = packs_of(scenarios, folder, err)
    original = rerunnable_trial(folder, trial, packs)
    shrunk = loop.run_whole(shrink_trial(original, damage))
    for line in lines_of(shrunk):
        out.print(line)
    if shrunk.fewest:
        record = original.record
        head = [
            f"The fewest faults that break trial {record.id} of {original.folder.name}: "
            f"{len(shrunk.fewest)} of the {len(shrunk.struck)} that struck it.",
            f"It ended {shrunk.failure.words}; without any fault it ends {shrunk.control.words}.",
            *([f"The trial is repetition {record.repetition}, the last of this config."] if record.repetition > 1 else []),
        ]
        text = config_text(original.arm.matrix.config, "shrunk", shrunk.plan.faults, head)
        _write_config(to or Path(f"{original.folder.name}-shrunk.toml"), text, packs)


def search(
    config: Annotated[Path, typer.Argument(help="A config; its plan names the faults that may occur.")],
    plan: Annotated[str, typer.Option(help="The fault plan.")],
    architecture: Annotated[str, typer.Option(help="The architecture.")],
    scenario: Annotated[str, typer.Option(help="The pack, or PACK/INSTANCE if the pack has instances.")],
    trials: Annotated[int, typer.Option(min=2, help="Run this many trials.")] = 200,
    to: Annotated[Path | None, typer.Option(help="The config to write; NAME-worst.toml, if not given.")] = None,
    scenarios: PacksOption = PACKS,
) -> None:
    """Find the faults that do most damage to an agent.

    The search tries sets of up to three occurrences of the plan's faults. It decides when the faults occur, and ignores the
    triggers of the plan. The config's first model answers; it must be simulated. The command writes the worst set as a config.

    For example: bench explain search studies/reliability_surface/config.toml --plan mixed_30 --architecture bare_agent
    --scenario contract_renewal/case_16
    """
    overrides = {"scenarios": [scenario], "architectures": [architecture], "plans": [plan], "repetitions": 1, "instances": None}
    settings = load_config(config, overrides)
    settings = settings.model_copy(update={"models": settings.models[:1]})
    if settings.model[settings.models[0]].kind != "simulated":
        raise ConfigError(
            f"model '{settings.models[0]}': a search asks for replies that nobody recorded; name a simulated model"
        )
    if plan == FAULT_FREE or not settings.faults_of(plan):
        raise ConfigError(f"plan '{plan}': has no fault that could strike; name another")
    packs = packs_of(scenarios, config, err)
    matrix = build_matrix(settings, packs, our_codebase().digest)
    if len(matrix.specs) != 1:
        raise ConfigError(f"scenario '{scenario}': has {len(matrix.scenarios)} instances; name an instance, as PACK/INSTANCE")
    arm = RerunArm(matrix.specs[0], matrix)
    result = loop.run_whole(search_schedules(arm.run, arm.spec.plan, trials))
    out.print(f"{architecture} on {scenario}: {len(result.tried)} trials, SIMULATED")
    for line in worst_lines(result, arm.spec.plan):
        out.print(line)
    if result.worst.schedule:
        head = [f"The worst schedule of {len(result.tried)} for {architecture} on {scenario}: {result.worst.harm.words}."]
        faults = plan_with(arm.spec.plan, result.worst.schedule).faults
        _write_config(to or Path(f"{settings.name}-worst.toml"), config_text(settings, "worst", faults, head), packs)


def lines_of(shrunk: ShrinkResult) -> list[str]:
    """Return the lines about the fewest faults that still break the trial."""
    record = shrunk.original.record
    instance = f"{record.scenario}/{record.instance}" if record.instance else record.scenario
    endings = f"It ended {shrunk.failure.words}. Without any fault it ends {shrunk.control.words}."
    lines = [
        f"trial {record.id}: {record.architecture} on {instance}, plan {record.plan}, repetition {record.repetition}",
        endings,
    ]
    if not shrunk.fewest:
        return [*lines, "It fails as it does without any fault: no fault is needed."]
    result_kept = f"more damage than that ({', '.join(sorted(shrunk.kinds))})" if shrunk.kinds else "that end"
    none_to_spare = "it cannot be left out" if len(shrunk.fewest) == 1 else "none of them can be left out"
    lines.append(
        f"{len(shrunk.fewest)} of the {len(shrunk.struck)} faults that struck it suffice for {result_kept}; {none_to_spare}:"
    )
    lines += _fault_lines(shrunk.fewest, shrunk.original.plan)
    lines.append(f"{shrunk.reruns} reruns were needed to see that; no model was asked.")
    if shrunk.unjudged:
        lines.append(f"{shrunk.unjudged} reruns asked for a reply that the run lacks; each counts as one that does not fail.")
    return lines


def worst_lines(result: SearchResult, menu: FaultPlan) -> list[str]:
    """Return the lines about the worst fault schedule, and the number of the trial that found it."""
    worst = result.worst
    if not worst.schedule:
        return ["No schedule did any damage beyond the control, or kept the trial from being solved."]
    count = len(worst.schedule)
    needed = f"{count} strike{'' if count == 1 else 's'}"
    place = f"the worst, {worst.harm.words}, is trial {result.trials_to_worst}; it needs {needed}:"
    return [place, *_fault_lines(sorted(worst.schedule, key=lambda struck: struck[1].attempt), menu)]


def _fault_lines(struck: Iterable[PlacedStrike], plan: FaultPlan) -> list[str]:
    """Return a line for each injected fault."""
    return [f"  {_fault_line(plan.faults[number], strike)}" for number, strike in struck]


def _fault_line(fault: Fault, strike: Strike) -> str:
    """Describe an injected fault in one line."""
    key = f", {strike.key}" if strike.key else ""
    return f"{fault.point} {fault.effect}: {strike.target}, {'try' if strike.key else 'attempt'} {strike.attempt}{key}"


def _write_config(path: Path, text: str, packs: Sequence[Path]) -> None:
    """Write a config, and print the command that runs it."""
    write_whole(path, text.encode())
    out.print(f"written: {path}; see it break: bench run {shlex.quote(str(path))}{option_of(packs)}")
