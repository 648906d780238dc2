"""The command `bench serve`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.command import UnguardedOption
from bench.cli.commands.setup import chosen_models, open_run, reply_source_lines, run_name
from bench.cli.remembered import remember
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError
from bench.common.paths import PACKS, RESULTS, named
from bench.common.signals import exit_code
from bench.run.experiment.code import our_codebase
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.runner import missing_trials
from bench.run.experiment.so_far import SoFar, calls_of
from bench.run.experiment.trial import TrialResult
from bench.run.experiment.untrusted import permission
from bench.run.trial.loop import run_whole

if TYPE_CHECKING:
    from bench.run.serve.session import ServingResult

TOKEN_VARIABLE = "BENCH_SERVE_TOKEN"
"""The environment variable with the token that clients must send."""


def command(
    config: Annotated[Path, typer.Argument(help="A config, such as configs/smoke.toml.")],
    model: Annotated[str | None, typer.Option(help="Answer with this model of the config, or recorded:RUN.")] = None,
    plan: Annotated[str | None, typer.Option(help="Inject this fault plan of the config.")] = None,
    scenario: Annotated[
        str | None, typer.Option(help="Serve the tasks of this pack; without a pack, calls are counted and nothing is graded.")
    ] = None,
    architecture: Annotated[str, typer.Option(help="The name of your agent in the results.")] = "external",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen at.")] = 8090,
    repetitions: Annotated[int | None, typer.Option(min=1, help="Serve each task this many times.")] = None,
    patience: Annotated[
        float, typer.Option(min=0, help="Give up a trial after this many seconds without a request; 0 means never.")
    ] = 3600.0,
    name: Annotated[str | None, typer.Option(help="The run's folder under results/.")] = None,
    aside: Annotated[bool, typer.Option("--set-aside", help="Rename a folder with a run of another config or code.")] = False,
    asks_token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token", help="Require a token as the API key; with --no-token any program can call the server."
        ),
    ] = True,
    unguarded: UnguardedOption = False,
    scenarios: Annotated[list[Path], typer.Option("--scenarios", help="A folder of packs.")] = PACKS,
) -> None:
    """Serve a model to your agent; count what failures cost it.

    The agent may be written in any language.

    --model recorded:RUN answers with the replies of a recorded run, under that run's seed: repetition n of a trial gets the
    replies of repetition n. A request that was not recorded is refused with 404, and its trial ends in an error.

    The server makes and prints a new token each time, unless the environment variable BENCH_SERVE_TOKEN has a token.

    For example: bench serve configs/smoke.toml --model simulated --plan none
    """
    # Here, because it imports aiohttp, for which no other command should wait.
    from bench.run.serve.session import external_config, external_matrix, serve, with_one_more_repetition  # noqa: PLC0415

    console, err = Terminal(), Terminal(stderr=True)
    models, recorded = chosen_models([model] if model else [])
    overrides = {"models": models, "plans": plan and [plan], "scenarios": scenario and [scenario], "repetitions": repetitions}
    settings = external_config(config, architecture, overrides, recorded)
    default_name = run_name(settings, architecture, (scenario or "free").replace(":", "-").replace("/", "-"))
    folder = named(RESULTS, name or default_name)
    matrix = external_matrix(
        settings if scenario else with_one_more_repetition(settings, folder), scenarios, our_codebase().digest
    )
    token = _token() if asks_token else ""
    permitted = permission(matrix, unguarded)
    writer, so_far = open_run(console, folder, matrix, aside, permitted), SoFar(matrix)
    remember(folder, scenarios)
    if writer is None:
        return
    try:
        missing_count = len(missing_trials(matrix.specs, writer.ended))
        print_result = _record_printer(console, so_far)

        def introduce(root: str) -> None:
            for line in _introduction(root, token, matrix, missing_count, folder):
                console.print(line)

        served = run_whole(serve(matrix, writer, port, introduce, print_result, patience, token, console.print, permitted))
    finally:
        writer.close()
    _conclude(console, served, so_far, folder)
    if served.deserted:
        err.print(f"nobody asked for the next trial for {patience:g} s; the same command goes on")
        raise typer.Exit(1)
    if served.stopped and scenario:
        raise typer.Exit(exit_code(served.stopped))
    if errors := list(so_far.errors()):
        err.print("\n".join(errors))
        raise typer.Exit(1)


def _record_printer(console: Terminal, so_far: SoFar) -> Callable[[TrialResult], None]:
    """Return a function that adds each record to the totals and prints the result of the trial."""

    def print_result(result: TrialResult) -> None:
        """Add a trial to the totals, and print its result."""
        so_far.add(result)
        record = result.record
        trial = f"{record.scenario} {record.plan} repetition {record.repetition}"
        reason = f" ({record.reason})" if record.reason else ""
        console.print(f"{trial}: {record.outcome}, {calls_of(record)} calls, {record.tokens:,} tokens{reason}")

    return print_result


def _token() -> str:
    """Return the token that clients must send as their API key. Raises ConfigError if the environment's token cannot be sent
    in a header."""
    token = os.environ.get(TOKEN_VARIABLE, "") or secrets.token_urlsafe(24)
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"{TOKEN_VARIABLE}: a token is letters, digits and signs, without a space; give it another")
    return token


def _introduction(root: str, token: str, matrix: Matrix, todo: int, folder: Path) -> Iterator[str]:
    """Yield the lines about the server's address and key, its models, the faults, and the folder of results."""
    yield f"base_url = {root}/v1    (any model name: the experiment's model and settings answer)"
    if not token:
        yield "api_key = any    (no token is asked for: every program on this machine may ask)"
    else:
        shown_token = f"the token in {TOKEN_VARIABLE}" if os.environ.get(TOKEN_VARIABLE) else token
        yield f"api_key = {shown_token}    (Authorization: Bearer)"
    for name, model in matrix.models.items():
        yield f"model '{name}'" + ("" if model.timing == "live" else ", whose seconds take no real time")
    yield from reply_source_lines(matrix)
    for plan in {plan.name: plan for plan in matrix.plans.values()}.values():
        faults = [f"{fault.effect} at {fault.point} of {fault.subtask}" for fault in plan.faults]
        yield f"plan '{plan.name}' injects {'; '.join(faults) or 'nothing'}"
    if any(scenario.graded for scenario in matrix.scenarios.values()):
        yield f"{todo} of {len(matrix.specs)} trials to do: GET {root}/trial, then POST {root}/trial/answer or /trial/give-up"
    else:
        yield "no scenario: calls are counted and nothing is graded; Ctrl-C ends the trial"
    yield f"recorded in {folder}; Ctrl-C stops"


def _conclude(console: Terminal, served: ServingResult, so_far: SoFar, folder: Path) -> None:
    """Print the totals after the server has stopped."""
    console.print(f"{'stopped' if served.stopped else 'done'}: {so_far.outcomes_text or 'no trial was begun'}")
    console.print(f"{served.requests} requests taken, {so_far.calls} calls recorded, {so_far.account}")
    if served.refusals:
        console.print(f"{len(served.refusals)} requests refused, the last: {served.refusals[-1]}")
    count, why = served.strangers
    if count:
        console.print(f"{count} requests turned away, the last: {why}")
    if so_far.trials:
        console.print(f"recorded in {folder}; next: bench report {folder.name}")
