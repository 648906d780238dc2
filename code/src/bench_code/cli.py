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
PortfolioArgument = Annotated[str, typer.Argument(help="The portfolio's name, as in `bench code declare`.")]
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
    """Show the code as it was at a step.

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
    """Show what ran at a step.

    These are tests, scripts and documents with examples, and the functions that ran in the tests.

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
    """Show what must run again if a function or a file is rewritten.

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
    """Show what a test depends on.

    Without a test the command shows what each execution depends on.

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
    """Show why a test must run again, and which patch changed its outcome.

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
    everything: Annotated[bool, typer.Option("--all", help="Run all tests, and record what each test depends on.")] = False,
    limit: Annotated[float | None, typer.Option(min=1, help="Stop the session after this many seconds.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the tests whose results your edits can have changed.

    All other arguments and options go to pytest.

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
        typer.Argument(
            metavar="FILE...",
            help="Python files, each in quotes with its arguments, and texts; paths from the top of the tree.",
        ),
    ],
    folder: FolderOption = HERE,
    limit: Annotated[float | None, typer.Option(min=1, help="Stop a process after this many seconds.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run scripts and documents whose results are out of date.

    Scripts are Python files, and documents are texts with examples. They run in the given order.

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
    call: Annotated[str, typer.Option(help="The model call that made the change.")] = "",
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Make a patch of the changes in this worktree.

    The patch has all changes since the last patch of this worktree, or since its first step.

    For example: bench code patch --action "fix the total"
    """
    new_patch = ExecutionState.open(folder).note_changes(action, call)
    targets = [target for edit in new_patch.edits for target in edit.targets]
    _show(as_json, new_patch, [f"{_label_of(new_patch)}: {', '.join(targets)}"])


@app.command()
def revert(number: PatchArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Undo a patch, and keep all later changes.

    For example: bench code revert 3
    """
    state = ExecutionState.open(folder)
    _show_step(state, state.revert(state.patch(number)), f"patch {number} is taken back", as_json)


@app.command("apply")
def apply_(number: PatchArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Apply a patch again, merged with all later changes.

    For example: bench code apply 3
    """
    state = ExecutionState.open(folder)
    _show_step(state, state.apply(state.patch(number)), f"patch {number} is applied", as_json)


@app.command()
def back(step: StepArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """Restore the files of this worktree as they were at a step.

    The present files become a step first, so no change is lost. Ignored files do not change, nor do untracked secrets and large
    files, since no step has them.

    For example: bench code back 5
    """
    state = ExecutionState.open(folder)
    _show_step(state, state.back(step), f"the files are those of step {step}", as_json)


@app.command()
def prune(
    keep: Annotated[int, typer.Option(min=1, max=2**63 - 1, help="Keep this many of the last steps.")] = 100,
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Delete old steps, and results that later results replaced.

    All patches and the last result of each test are kept.

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
    portfolio: Annotated[str, typer.Argument(help="A name for the files that belong together.")],
    artifacts: Annotated[
        list[str],
        typer.Argument(
            metavar="ARTIFACT=NEED,NEED...", help="A file, and the files that it is made from or that it describes."
        ),
    ],
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Declare which code, tests and documents belong together.

    `bench code stale` then lists the tests and documents that a patch made out of date.

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
    artifact: Annotated[str, typer.Argument(help="A file of the portfolio.")],
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
) -> None:
    """Record that a file of a portfolio is up to date.

    You confirm that you looked at the file, and that it fits the present versions of the files that it needs.

    For example: bench code confirm prices README.md
    """
    ExecutionState.open(folder).confirm(portfolio, artifact)
    _show(as_json, {"portfolio": portfolio, "artifact": artifact}, ())


@app.command()
def stale(portfolio: PortfolioArgument, folder: FolderOption = HERE, as_json: JsonOption = False) -> None:
    """List the files of a portfolio that are out of date.

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
    """List all steps, with the time, the reason and what ran.

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
