"""The command `bench probe`."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
import tomllib
from collections.abc import Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.command import COMMAND_METAVAR
from bench.cli.commands.probed import SUITE, ProbeFiles, ProbeProgress, show_probe
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.common.escaping import escape_line
from bench.common.paths import REPORTS, RESULTS, named
from bench.common.signals import Stop, exit_code
from bench.record.events import of_kind
from bench.record.files import MANIFEST, holds
from bench.record.probe_events import CellsPlanned

# What runs a probe is imported when it runs: no other command should wait for it.
if TYPE_CHECKING:
    from bench.probe.run.init import AgentDraft
    from bench.probe.run.probe import ProbeRequest
    from bench.probe.run.secrets import Secrets
    from bench.probe.run.settings import ProbeSettings
    from bench.probe.run.watch import WatchedRun
    from bench.probe.run.writing import ProbeWriter

TESTS = Path("tests", "probe")
"""The folder of the pytest files that --test writes."""
UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
"""The unit of a time such as 5m -> its seconds."""
out, err = Terminal(), Terminal(stderr=True)


def probe(
    file: Annotated[Path, typer.Argument(help="The probe file, which `bench probe --init` writes.")] = Path("probe.toml"),
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar=COMMAND_METAVAR, help="Your agent's command. Without a probe file, one watched run writes it."),
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Write the file from one watched run of the agent, and stop; overwrite nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be copied, started and reset; start nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do what is shown, without a question.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CELL", help="Run only these cells: a point's name, or a part of a cell's name; `*` matches any text."
        ),
    ] = None,
    all_forms: Annotated[bool, typer.Option("--all-forms", help="Test each fault in all its forms, such as silence.")] = False,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start no further cell after this time: 90s, 5m, 1h.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=16, help="Run this many agents at a time, each on separate copies.")] = 1,
    name: Annotated[str | None, typer.Option(help="The run's folder under results/.")] = None,
    aside: Annotated[bool, typer.Option("--set-aside", help="Rename the folder of an earlier probe, and start again.")] = False,
    test: Annotated[
        str | None,
        typer.Option(metavar="CELL", help="Write a failing pytest file for this cell, with recorded answers, to tests/probe."),
    ] = None,
    unboxed: Annotated[
        bool, typer.Option("--unboxed", help="Run without a box: the agent gets paths of copies, and other files are real.")
    ] = False,
    as_json: Annotated[Path | None, typer.Option("--json", help="Write the result as JSON too, for a program.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write a case for each cell as a JUnit file too, for a CI server.")] = None,
    as_markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write probe.md to this path too, for a comment on a pull request.")
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove what a killed probe left behind, and restore a store that changed.")
    ] = False,
) -> None:
    """Find out whether your own agent does damage when a call fails.

    The agent and its tools run in a box, in which their files are copies. Each further run breaks one call in one way: for
    example, its answer is lost, the agent is killed, or the call is delivered twice. The rows of the database afterwards decide
    the verdict. After Ctrl-C the same command continues the probe.

    Exit codes: 0 no damage, within the limits that the page names; 1 damage; 2 the agent cannot be probed; 3 undecided; 4 only
    a tool does damage, when it gets one call twice.

    For example: bench probe -- python agent.py
    """
    if sys.platform == "win32":
        raise ConfigError("bench probe needs Linux or macOS; on Windows run it in WSL")
    if clean:
        _clean(file, yes)
        return
    if init:
        _init(file, command or (), yes, unboxed)
        return
    from bench.probe.run.preview import plan_lines  # noqa: PLC0415
    from bench.probe.run.probe import ProbeRequest  # noqa: PLC0415
    from bench.probe.run.secrets import Secrets  # noqa: PLC0415
    from bench.probe.run.settings import ProbeSettings  # noqa: PLC0415

    files = ProbeFiles(as_json, junit, as_markdown)
    with _junit_on_error(junit, str(file)):
        limit, _ = _budget_seconds(budget), named(RESULTS, name or "probe")  # a mistake is refused before the agent runs
        if command and dry_run and not file.exists():
            out.print("\n".join(map(escape_line, _draft(file, command).plan)))
            out.print("nothing was started")
            return
        if command:
            _write_new_file(file, command, yes, unboxed)
        settings = ProbeSettings(file, boxed=not unboxed)
        secrets = Secrets.of(settings.subject, os.environ, settings.secret_addresses)
        if dry_run:
            out.print("\n".join(plan_lines(settings)))
            out.print("nothing was started")
            return
        out.print("what is to be run, again and again:")
        out.print("\n".join(plan_lines(settings)))
        if yes:
            settings.check_unasked()
        else:
            _require_agreement("run it?", "nothing was run")
        if test:
            from bench.probe.run.regression import write_test  # noqa: PLC0415

            out.print(write_test(file, settings, secrets, test, TESTS))
            return
        folder = named(RESULTS, name or f"{settings.subject.name}-probe")
        request = ProbeRequest(workers, all_forms, tuple(only or ()), limit)
        writer = _open(settings, secrets, folder, request, aside)
        stopped = _run(settings, secrets, writer, request) if writer else 0
        if stopped and not holds(folder, MANIFEST):
            raise typer.Exit(stopped)
        raise typer.Exit(show_probe(out, folder, named(REPORTS, folder.name), stopped, files))


def _junit_on_error(path: Path | None, file: str) -> AbstractContextManager[None]:
    """Write a JUnit file with one error if a path is given and the file cannot be probed."""
    if not path:
        return nullcontext()
    from bench.cli.junit import junit_on_error  # noqa: PLC0415  few probes write the file

    return junit_on_error(path, SUITE, file, "conclusion")


def _init(file: Path, command: Sequence[str], yes: bool, unboxed: bool) -> None:
    """Write the probe file, from a watched run if possible."""
    from bench.probe.run.init import file_exists_error  # noqa: PLC0415

    if file.exists():
        raise file_exists_error(file)
    draft = _draft(file, command)
    _write(file, draft, *_watch(draft, yes, unboxed))
    out.print(f"{file} is written; look at it, then: bench probe --dry-run")


def _write_new_file(file: Path, command: Sequence[str], yes: bool, unboxed: bool) -> None:
    """Write the probe file for the given command, unless the file exists. Raises ConfigError if no probe can follow."""
    from bench.probe.run.probe_file import read_probe_file  # noqa: PLC0415

    if file.exists():
        file_command = read_probe_file(file).agent
        if list(command) != (shlex.split(file_command) if isinstance(file_command, str) else list(file_command)):
            raise ConfigError(f"{file}: is there already, for another command; move it away, or start that: bench probe {file}")
        return
    draft = _draft(file, command)
    run, reason = _watch(draft, yes, unboxed)
    if run is None and not unboxed:
        raise ConfigError(f"probe: nothing was run: {reason}")
    if run and (run.changed or not run.is_whole):
        raise ConfigError(f"probe: {run.changed or run.ending}; no file was written")
    text = _write(file, draft, run, reason)
    out.print(f"{file} is written")
    if "store" not in tomllib.loads(text):
        raise ConfigError(f"{file}: names no store, since the agent changed no file that was there before; name one there")


def _draft(file: Path, command: Sequence[str]) -> AgentDraft:
    """Return the draft of the probe file, made from the files and variables of this folder."""
    from bench.probe.run.init import draft_of  # noqa: PLC0415

    return draft_of(file.absolute().parent, os.environ, Path.home(), command)


def _write(file: Path, draft: AgentDraft, run: WatchedRun | None, reason: str) -> str:
    """Write the probe file, print it, and return its text. `reason` says why no run was watched."""
    from bench.probe.run.found import watched_tables  # noqa: PLC0415
    from bench.probe.run.init import static_tables, write_probe_file  # noqa: PLC0415

    if run:
        text = write_probe_file(file, watched_tables(draft, run), run.summary)
    else:
        text = write_probe_file(
            file, static_tables(draft), f"No run was watched: {reason}. This is what files and variables say."
        )
    out.print(draft.for_terminal(text).rstrip())
    return text


def _watch(draft: AgentDraft, yes: bool, unboxed: bool) -> tuple[WatchedRun | None, str]:
    """Ask the user, run the agent once in a box, and return what was observed; or None and the reason why no run was
    watched."""
    from bench.probe.run.secrets import Secrets  # noqa: PLC0415
    from bench.probe.run.watch import watch  # noqa: PLC0415
    from bench.run.trial import loop  # noqa: PLC0415

    if not draft.command or unboxed:
        return None, "no box was asked for" if unboxed else "no command is known; give it: bench probe --init -- COMMAND"
    out.print("\n".join(map(escape_line, draft.plan)))
    if not yes and not sys.stdin.isatty():
        return None, "nobody could be asked; --yes watches one unasked"
    if not yes and not _ask_yes("watch this run?"):
        return None, "it was not wanted"
    subject, databases = draft.watched_subject(unasked=yes)
    secrets = Secrets.of(subject, os.environ, draft.servers.values())
    try:
        if yes and (remote_reason := draft.remote_service):
            return None, f"{remote_reason}, and --yes starts nothing that can act elsewhere"
        return loop.run(watch(subject, databases, draft.further_data, secrets)), ""
    except ConfigError as error:
        return None, secrets.blot(str(error))


def _require_agreement(question: str, refusal: str) -> None:
    """Ask the user about the printed plan. Anybody can have written the files from which the plan was made, so the user must
    agree."""
    if not sys.stdin.isatty():
        raise ConfigError(f"probe: nobody can be asked: {question} Look at it, then give --yes")
    if not _ask_yes(question):
        raise ConfigError(f"probe: {refusal}")


def _ask_yes(question: str) -> bool:
    """Print a question and return whether the user answered yes."""
    out.print(f"{question} y, or anything else for no: ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _clean(file: Path, yes: bool) -> None:
    """Restore and remove what a killed probe left behind."""
    from bench.probe.run.probe_file import orphans_in_file  # noqa: PLC0415

    leftovers = list(orphans_in_file(file))
    if not leftovers:
        out.print("no killed probe left anything here")
        return
    out.print("\n".join(orphan.plan for orphan in leftovers))
    if not yes:
        _require_agreement("do this?", "nothing was restored or removed")
    for orphan in leftovers:
        out.print(orphan.clean())


def _open(settings: ProbeSettings, secrets: Secrets, folder: Path, request: ProbeRequest, aside: bool) -> ProbeWriter | None:
    """Begin the run or continue it. Return None if the run is complete."""
    from bench.probe.run.writing import ProbeWriter, holds_other_probe  # noqa: PLC0415
    from bench.record.store import set_aside  # noqa: PLC0415
    from bench.run.experiment.code import code_version  # noqa: PLC0415

    probed = settings.manifest_entry(request.all_forms, request.only)
    if folder.exists() and (aside or holds_other_probe(folder, probed)):
        out.print(f"{folder} holds an earlier probe; its name is now {set_aside(folder)}")
    try:
        writer = ProbeWriter(folder, settings.subject.name, probed, secrets, settings.parameters, code_version())
    except ResultsError as error:
        raise ResultsError(f"{str(error).split(';', maxsplit=1)[0]}; give --set-aside to begin anew, or --name") from error
    if not writer.is_complete:
        return writer
    writer.close()
    out.print(f"{folder}: is complete, and nothing was run; with --set-aside it begins anew")
    return None


def _run(settings: ProbeSettings, secrets: Secrets, writer: ProbeWriter, request: ProbeRequest) -> int:
    """Run the missing cells of a probe, and show each verdict. Return the exit code of the signal that stopped the probe, or
    0."""
    from bench.run.trial import loop  # noqa: PLC0415

    if stopped := loop.run(_run_until_signal(settings, secrets, writer, request)):
        err.print(f"stopped; what is recorded is kept in {writer.folder}: the same command goes on from there")
        return exit_code(stopped)
    return 0


async def _run_until_signal(
    settings: ProbeSettings, secrets: Secrets, writer: ProbeWriter, request: ProbeRequest
) -> signal.Signals | None:
    """Run the cells until all have ended or a signal asks to stop. Return the signal, or None."""
    from bench.probe.run.running import run_probe  # noqa: PLC0415

    async def run_cells() -> None:
        """Run the missing cells, and show each run of the agent."""
        with ProbeProgress(out, settings.parameters, request.workers, writer.plans) as progress:
            for planned in chain.from_iterable(of_kind(record.events, CellsPlanned) for record in writer.recorded):
                progress.plan(planned)
            async with aclosing(run_probe(settings, secrets, writer, request)) as runs:
                async for run in runs:
                    progress.show(run)

    running = asyncio.create_task(run_cells())
    with Stop(asyncio.get_running_loop(), running.cancel) as stop, suppress(asyncio.CancelledError):
        await running
    return stop.by


def _budget_seconds(text: str | None) -> float | None:
    """Return the seconds of a time such as 5m; None for None. Raises ConfigError for any other text."""
    if text is None:
        return None
    time = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smh])", text.strip())
    if not time:
        raise ConfigError(f"--budget {text[:40]}: is no time; give seconds, minutes or hours, such as 90s, 5m, 1h")
    return float(time[1]) * UNIT_SECONDS[time[2]]
