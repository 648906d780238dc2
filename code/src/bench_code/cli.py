"""The commands of `bench code`. They show what a patch invalidates and who changed what, and run what must run again."""

from __future__ import annotations

import datetime
import json
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench.common.escaping import escape_line, escape_terminal
from bench_code.edits import Edit
from bench_code.git import CodeError
from bench_code.patches import Patch
from bench_code.record import Fact
from bench_code.state import ExecutionState
from bench_code.validity import BAD

app = typer.Typer(help="Show what a patch of code invalidates, and what must run again.", no_args_is_help=True)
FolderOption = Annotated[Path, typer.Option("--in", help="A folder of the git repository.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")]
PortfolioArgument = Annotated[str, typer.Argument(help="The portfolio's name, as `bench code declare` was given it.")]
PatchArgument = Annotated[int, typer.Argument(metavar="PATCH", min=1, max=2**63 - 1, help="The patch's number.")]
StepArgument = Annotated[int, typer.Argument(min=1, max=2**63 - 1, help="The number of a step; `bench code log` shows them.")]
HERE = Path()
PATCH_NOTE = re.compile(r"patch ([0-9]{1,18})")
"""Matches the note of a step that a patch made."""


@app.command()
def at(
    step: Annotated[int, typer.Option(min=1, max=2**63 - 1, help="The number of a step; `bench code log` shows them.")],
    path: Annotated[str, typer.Argument(help="Show this file as it was.")] = "",
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Show what code there was at a step.

    For example: bench code at --step 5
    """
    state = ExecutionState.open(folder)
    if path:
        content = state.content(step, path).decode("utf-8", "replace")
        if not as_json:
            typer.echo(escape_terminal(content) if sys.stdout.isatty() else content, nl=False)
            return
        _show(as_json, {"step": step, "path": path, "content": content}, ())
        return
    versions = dict(sorted(state.at(step).items()))
    _show(as_json, {"step": step, "versions": versions}, (f"{version}  {artifact}" for artifact, version in versions.items()))


@app.command()
def ran(step: StepArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Show which tests, scripts and documents ran at a step, and which functions ran in the tests.

    For example: bench code ran 5
    """
    executions, functions = ExecutionState.open(folder).ran(step)
    lines = [f"{execution.outcome}  {execution.name}" for execution in executions]
    lines += [f"{version}  {artifact}" for artifact, version in functions.items()]
    _show(as_json, {"step": step, "executions": executions, "functions": functions}, lines or ["nothing ran"])


@app.command()
def impact(
    artifact: Annotated[str, typer.Argument(metavar="FUNC", help="path::function, path::Class.method, or a file.")],
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Show what must run again if a function or a file is made anew.

    For example: bench code impact shop/prices.py::total
    """
    names = ExecutionState.open(folder).impact(artifact)
    _show(as_json, {"artifact": artifact, "rerun": names}, names or ["nothing ran it"])


@app.command()
def needs(
    test: Annotated[str | None, typer.Argument(help="A test's node id; all tests if it is not given.")] = None,
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Show what a test depends on; without a test, the whole graph of executions.

    For example: bench code needs tests/test_prices.py::test_total
    """
    graph = ExecutionState.open(folder).needs(test)
    lines = (f"{name}  {line}" for name, facts in graph.items() for line in _by_package(facts))
    _show(as_json, {name: [fact._asdict() for fact in facts] for name, facts in graph.items()}, lines)


def _by_package(facts: Iterable[Fact]) -> list[str]:
    """Return a line for each fact. The files of an installed package share a line, which counts them."""
    counts: Counter[str] = Counter()
    for kind, name, _ in facts:
        folder, packages, inside = name.partition("-packages/") if name.startswith("/") else (name, "", "")
        counts[f"{kind}  {folder}{packages}{inside.partition('/')[0]}"] += 1
    return [f"{line}  ({number} files)" if number > 1 else line for line, number in counts.items()]


@app.command()
def why(
    test: Annotated[str, typer.Argument(help="A test's node id.")], folder: FolderOption = HERE, as_json: JsonOption = False
) -> None:
    """Show why a test must run again, and which patch turned it last.

    For example: bench code why tests/test_prices.py::test_total
    """
    state = ExecutionState.open(folder)
    last, kept, stale, turned = state.last(test), state.kept(test), state.why(test), state.turned_by(test)
    lines = [f"{test} is valid: {kept.outcome} at step {kept.step}"] if kept else []
    lines += [f"{test} {last.volatile}"] if last.volatile else []
    if not (kept or stale) and last.outcome in BAD:
        lines.append(f"{test} runs again, as no failure is kept: {last.outcome} at step {last.step}")
    elif not (kept or stale):
        lines.append(f"{test} runs again with another test, with which it shares what one of them leaves in memory")
    lines += [f"changed: {fact.words}" for fact in stale]
    lines += [f"turned by {_label_of(patch)}" for patch in turned]
    _show(as_json, {"last": last, "kept": kept, "changed": [fact._asdict() for fact in stale], "turned_by": turned}, lines)


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def run(
    context: typer.Context,
    folder: FolderOption = HERE,
    everything: Annotated[bool, typer.Option("--all", help="Run all tests, and note what each of them runs.")] = False,
    limit: Annotated[float | None, typer.Option(min=1, help="Seconds after which the session is ended.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the tests that the present code invalidates; further words are pytest's.

    For example: bench code run
    """
    state = ExecutionState.open(folder)
    if not as_json:
        raise typer.Exit(state.run(context.args, everything, limit))
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        code = state.run(context.args, everything, limit, report)
        if not report.exists():
            raise CodeError(f"pytest ended with {code} before any test; standard error says why")
        typer.echo(report.read_text("utf-8"))
    raise typer.Exit(code)


@app.command()
def make(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Python files, each quoted with its arguments, and texts; from the tree's top."),
    ],
    folder: FolderOption = HERE,
    limit: Annotated[float | None, typer.Option(min=1, help="Seconds after which a process is ended.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run in their order those scripts, which are Python files, and texts with examples whose results no longer hold.

    For example: bench code make "extract.py --all" report.py README.md
    """
    results = ExecutionState.open(folder).run_all([_words(file) for file in files], limit)
    rows = [
        {"file": file, "outcome": result.outcome, "kept_from": result.step if is_kept else None}
        for file, (result, is_kept) in zip(files, results, strict=True)
    ]
    notes = (f", kept from step {row['kept_from']}" if row["kept_from"] else "" for row in rows)
    _show(as_json, rows, (f"{row['file']}: {row['outcome']}{note}" for row, note in zip(rows, notes, strict=True)))
    raise typer.Exit(int(any(result.outcome != "passed" for result, _ in results)))


def _words(file: str) -> list[str]:
    """Return the path of a file and its arguments. Raises CodeError if a quote is not closed."""
    try:
        return shlex.split(file) or [""]
    except ValueError as error:
        raise CodeError(f"'{file}' is no file with arguments: {error}") from None


@app.command()
def patch(
    action: Annotated[str, typer.Option(help="The agent's action that made the change.")] = "",
    call: Annotated[str, typer.Option(help="The model call that made it.")] = "",
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Make a patch of all that changed in this worktree since its last patch, or its first step.

    For example: bench code patch --action "fix the total"
    """
    new_patch = ExecutionState.open(folder).note_changes(action, call)
    targets = [target for edit in new_patch.edits for target in edit.targets]
    _show(as_json, new_patch, [f"{_label_of(new_patch)}: {', '.join(targets)}"])


@app.command()
def revert(number: PatchArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Take a patch back, and keep what others changed since.

    For example: bench code revert 3
    """
    state = ExecutionState.open(folder)
    _show_step(state, state.revert(state.patch(number)), f"patch {number} is taken back", as_json)


@app.command("apply")
def apply_(number: PatchArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Apply a patch again, merged with what changed since.

    For example: bench code apply 3
    """
    state = ExecutionState.open(folder)
    _show_step(state, state.apply(state.patch(number)), f"patch {number} is applied", as_json)


@app.command()
def back(step: StepArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Bring the files of this worktree back to a step. The present files become a step too, so nothing is lost.

    Ignored files stay as they are, and so do untracked secrets and large files, which no step holds.

    For example: bench code back 5
    """
    state = ExecutionState.open(folder)
    _show_step(state, state.back(step), f"the files are those of step {step}", as_json)


@app.command()
def prune(
    keep: Annotated[int, typer.Option(min=1, max=2**63 - 1, help="How many of the last steps are kept.")] = 100,
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Drop old steps, and the old results that later ones replaced. Patches and the last result of each test are kept.

    For example: bench code prune --keep 20
    """
    steps, executions, freed = ExecutionState.open(folder).prune(keep)
    line = f"dropped {steps} steps and {executions} results, {freed:,} bytes; `git gc` frees what of them git holds"
    _show(as_json, {"steps": steps, "executions": executions, "bytes": freed}, [line])


def _show_step(state: ExecutionState, step: int, done: str, as_json: bool) -> None:
    """Print a step, what made it, and how many executions must run again."""
    invalid = state.invalid()
    line = f"step {step}: {done}; {len(invalid)} executions must run again"
    _show(as_json, {"step": step, "rerun": invalid}, [line])


@app.command()
def declare(
    portfolio: Annotated[str, typer.Argument(help="The portfolio's name.")],
    artifacts: Annotated[
        list[str],
        typer.Argument(metavar="ARTIFACT=NEED,NEED...", help="A file, and the files that it is made from or is about."),
    ],
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
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
    _show(as_json, {"portfolio": portfolio, "needs": needs}, [f"portfolio {portfolio}: {len(needs)} artifacts"])


@app.command()
def confirm(
    portfolio: PortfolioArgument,
    artifact: Annotated[str, typer.Argument(help="A file of it that fits what it needs.")],
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Record that you looked at an artifact of a portfolio, and that it fits the present versions of the artifacts it needs.

    For example: bench code confirm prices README.md
    """
    ExecutionState.open(folder).confirm(portfolio, artifact)
    _show(as_json, {"portfolio": portfolio, "artifact": artifact}, ())


@app.command()
def stale(portfolio: PortfolioArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Show what of a portfolio of code, tests and documents is stale.

    For example: bench code stale prices
    """
    stale = ExecutionState.open(folder).stale(portfolio)
    lines = []
    for artifact in stale:
        reasons = [*(f"run {name}" for name in artifact.rerun), *(f"{path} changed" for path in artifact.because)]
        lines.append(f"{artifact.path}: {', '.join(reasons)}")
    _show(as_json, stale, lines)


@app.command()
def log(folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Show all steps: when, why, and what ran on each.

    For example: bench code log
    """
    state, entries, lines = ExecutionState.open(folder), [], []
    for step in state.steps():
        when = datetime.datetime.fromtimestamp(step.at).isoformat(" ", "seconds")
        count = state.outcomes_at(step.id)
        ran = ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items())) or "nothing ran"
        of_patch = PATCH_NOTE.fullmatch(step.note)
        note = _label_of(state.patch(int(of_patch[1]))) if of_patch else step.note
        lines.append(f"{step.id:>4}  {when}  {step.kind:<6}  {ran}{f'  {note}' if note else ''}")
        entries.append({**vars(step), "outcomes": count})
    _show(as_json, entries, lines)


def _label_of(patch: Patch) -> str:
    """Return the patch's number, and the action or call that made the patch."""
    return f"patch {patch.id}" + (f" ({patch.made_by})" if patch.made_by else "")


def _show(as_json: bool, value: object, lines: Iterable[str]) -> None:
    """Print a value as JSON, or its lines. Names and notes in them are a repository's, which can be a stranger's."""
    for line in [json.dumps(value, default=_plain)] if as_json else lines:
        typer.echo(escape_line(line))


def _plain(value: object) -> object:
    """Return an object as JSON can hold it. An edit is given without its contents."""
    return {"path": value.path, "targets": value.targets} if isinstance(value, Edit) else vars(value)
