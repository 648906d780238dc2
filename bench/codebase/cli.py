"""The commands of `bench code`. They show what a patch invalidates and who changed what, and run what must run again."""

from __future__ import annotations

import datetime
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench.codebase.git import CodeError
from bench.codebase.patches import Patch
from bench.codebase.running import Runnable
from bench.codebase.state import ExecutionState
from bench.common.escaping import escape_line, escape_terminal

app = typer.Typer(help="Show what a patch of code invalidates, and what must run again.", no_args_is_help=True)
FolderOption = Annotated[Path, typer.Option("--in", help="A folder of the git repository.")]
PatchArgument = Annotated[int, typer.Argument(metavar="PATCH", min=1, max=2**63 - 1, help="The patch's number.")]
HERE = Path()
OF_A_PATCH = re.compile(r"patch ([0-9]{1,18})")
"""The note of a step that a patch made."""
WORDS = {
    "body": "the function {}",
    "skeleton": "the outside of functions in {}",
    "effects": "what {} does while it is imported",
    "name": "where module {} is found",
    "status": "whether {} is there",
}


@app.command()
def at(
    step: Annotated[int, typer.Option(min=1, max=2**63 - 1, help="The number of a step; `bench code log` shows them.")],
    path: Annotated[str, typer.Argument(help="Show this file as it was.")] = "",
    folder: FolderOption = HERE,
) -> None:
    """Show what code there was at a step.

    For example: bench code at --step 5
    """
    state = ExecutionState.open(folder)
    if path:
        content = state.content(step, path).decode("utf-8", "replace")
        typer.echo(escape_terminal(content) if sys.stdout.isatty() else content, nl=False)
        return
    for artifact, version in sorted(state.at(step).items()):
        _say(f"{version}  {artifact}")


@app.command()
def impact(
    artifact: Annotated[str, typer.Argument(metavar="FUNC", help="path::function, path::Class.method, or a file.")],
    folder: FolderOption = HERE,
) -> None:
    """Show what must run again if a function or a file is made anew.

    For example: bench code impact shop/prices.py::total
    """
    state = ExecutionState.open(folder)
    names = state.impact(artifact)
    for name in names:
        _say(name)
    if not names:
        for name in state.reachable_from(artifact):
            _say(f"{name}  (never ran; by the static graph)")


@app.command()
def why(test: Annotated[str, typer.Argument(help="A test's node id.")], folder: FolderOption = HERE) -> None:
    """Show why a test must run again, and which patch turned it last.

    For example: bench code why tests/test_prices.py::test_total
    """
    state = ExecutionState.open(folder)
    stale = state.why(test)
    last = state.executions(test)[-1]
    if last.volatile:
        _say(f"{test} is never kept: it {last.volatile}")
    elif not stale:
        _say(f"{test} is valid: {last.outcome} at step {last.step}")
    for fact in stale:
        what = WORDS.get(fact.kind, "{kind} {}").format(fact.name.partition(" in ")[0], kind=fact.kind)
        _say(f"changed: {what}")
    for patch in state.turned_by(test):
        _say(f"turned by {_label_of(patch)}")


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def run(
    context: typer.Context,
    folder: FolderOption = HERE,
    everything: Annotated[bool, typer.Option("--all", help="Run and record all tests.")] = False,
    reverse: Annotated[
        bool, typer.Option("--reversed", help="Run all in reverse order, which shows what tests share.")
    ] = False,
    limit: Annotated[float | None, typer.Option(min=1, help="Seconds after which the session is ended.")] = None,
) -> None:
    """Run the tests that the present code invalidates; further words are pytest's.

    For example: bench code run
    """
    mode = "reversed" if reverse else "usual" if everything else "select"
    raise typer.Exit(ExecutionState.open(folder).run(context.args, mode, limit))


@app.command()
def make(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Python files, each quoted with its arguments, and texts; from the tree's top."),
    ],
    folder: FolderOption = HERE,
    limit: Annotated[float | None, typer.Option(min=1, help="Seconds after which a process is ended.")] = None,
) -> None:
    """Run in their order those steps, which are Python files, and those texts with examples whose results no longer hold.

    For example: bench code make "extract.py --all" report.py README.md
    """
    results = ExecutionState.open(folder).run_all([_runnable(each) for each in files], limit)
    for file, (result, was_kept) in zip(files, results, strict=True):
        _say(f"{file}: {result.outcome}" + (f", kept from step {result.step}" if was_kept else ""))
    raise typer.Exit(int(any(result.outcome != "passed" for result, _ in results)))


def _runnable(file: str) -> Runnable:
    try:
        path, *arguments = shlex.split(file)
    except ValueError as error:
        raise CodeError(f"'{file}' is no file with arguments: {error}") from None
    return Runnable("step" if path.endswith(".py") else "document", path, path, tuple(arguments))


@app.command()
def patch(
    action: Annotated[str, typer.Option(help="The agent's action that made the change.")] = "",
    call: Annotated[str, typer.Option(help="The model call that made it.")] = "",
    person: Annotated[str, typer.Option(help="The person who made it.")] = "",
    folder: FolderOption = HERE,
) -> None:
    """Make a patch of all that changed in this worktree since its last patch, or its first step.

    For example: bench code patch --action "fix the total"
    """
    made = ExecutionState.open(folder).note_changes(action, call, person)
    _say(f"{_label_of(made)}: {', '.join(target for edit in made.edits for target in edit.targets)}")


@app.command()
def revert(
    number: Annotated[int, typer.Argument(metavar="PATCH", min=1, max=2**63 - 1, help="The patch's number.")],
    folder: FolderOption = HERE,
) -> None:
    """Take a patch back, and keep what others changed since.

    For example: bench code revert 3
    """
    state = ExecutionState.open(folder)
    step = state.revert(state.patch(number))
    invalid = state.invalid()
    _say(f"step {step}: patch {number} is taken back; {len(invalid)} executions must run again")


@app.command("apply")
def apply_(
    number: Annotated[int, typer.Argument(metavar="PATCH", min=1, max=2**63 - 1, help="The patch's number.")],
    folder: FolderOption = HERE,
) -> None:
    """Apply a patch again, merged with what changed since.

    For example: bench code apply 3
    """
    state = ExecutionState.open(folder)
    step = state.apply(state.patch(number))
    _say(f"step {step}: patch {number} is applied; {len(state.invalid())} executions must run again")


@app.command()
def declare(
    portfolio: Annotated[str, typer.Argument(help="The portfolio's name.")],
    artifacts: Annotated[
        list[str],
        typer.Argument(metavar="ARTIFACT=NEED,NEED...", help="A file, and the files that it is made from or is about."),
    ],
    folder: FolderOption = HERE,
) -> None:
    """Declare code, tests and documents that belong together. `bench code stale` then says what of them a patch made stale.

    For example: bench code declare prices README.md=shop/prices.py tests/test_prices.py=shop/prices.py
    """
    needs: dict[str, Sequence[str]] = {}
    for artifact in artifacts:
        path, _, needed = artifact.partition("=")
        needs[path] = needed.split(",") if needed else ()
    for path in {path for needed in needs.values() for path in needed}:
        needs.setdefault(path, ())
    ExecutionState.open(folder).declare(portfolio, needs)
    _say(f"portfolio {portfolio}: {len(needs)} artifacts")


@app.command()
def confirm(
    portfolio: Annotated[str, typer.Argument(help="The portfolio's name.")],
    artifact: Annotated[str, typer.Argument(help="A file of it that fits what it needs.")],
    folder: FolderOption = HERE,
) -> None:
    """Note that you looked at an artifact of a portfolio, and that it fits the present versions of what it needs.

    For example: bench code confirm prices README.md
    """
    ExecutionState.open(folder).confirm(portfolio, artifact)


@app.command()
def stale(
    portfolio: Annotated[str, typer.Argument(help="The portfolio's name, as `bench code declare` was given it.")],
    folder: FolderOption = HERE,
) -> None:
    """Show what of a portfolio of code, tests and documents is stale.

    For example: bench code stale prices
    """
    for stale in ExecutionState.open(folder).stale(portfolio):
        why = [*(f"run {name}" for name in stale.rerun), *(f"{path} changed" for path in stale.because)]
        _say(f"{stale.path}: {', '.join(why)}")


@app.command()
def log(folder: FolderOption = HERE) -> None:
    """Show all steps: when, why, and what ran on each.

    For example: bench code log
    """
    state = ExecutionState.open(folder)
    for step in state.steps():
        when = datetime.datetime.fromtimestamp(step.at).isoformat(" ", "seconds")
        count = state.outcomes_at(step.id)
        ran = ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items())) or "nothing ran"
        of_patch = OF_A_PATCH.fullmatch(step.note)
        note = _label_of(state.patch(int(of_patch[1]))) if of_patch else step.note
        _say(f"{step.id:>4}  {when}  {step.kind:<6}  {ran}{f'  {note}' if note else ''}")


def _label_of(patch: Patch) -> str:
    return f"patch {patch.id}" + (f" ({patch.made_by})" if patch.made_by else "")


def _say(line: str) -> None:
    """Print a line. Names, notes and persons in it are a repository's, which can be a stranger's."""
    typer.echo(escape_line(line))
