"""The command `bench explain diagnose`."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli.command import PacksOption
from bench.cli.commands.completion import run_names
from bench.cli.remembered import packs_of
from bench.cli.terminal import Terminal
from bench.common.errors import ResultsError
from bench.common.paths import PACKS, folder_of
from bench.record.reading import read_manifest, read_trials
from bench.record.record import TrialRecord, latest
from bench.rerun.diagnose import Diagnosis, is_failed
from bench.rerun.diagnose import diagnose as diagnose_trial
from bench.rerun.diagnosis_text import as_json, diagnosis_lines, trial_lines
from bench.rerun.rerun import RerunnableTrial, record_of, rerunnable_trials, why_not_rerun
from bench.run.trial import loop

UNEXPLAINED_EXIT_CODE = 3
out, err = Terminal(), Terminal(stderr=True)


def diagnose(
    run: Annotated[str, typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder.")],
    trial: Annotated[str, typer.Option(help="Only this trial: its id or the id's beginning, or `worst` (most damage).")] = "",
    most: Annotated[int, typer.Option(min=1, help="Diagnose at most this many failed trials, picked evenly.")] = 20,
    prints_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    scenarios: PacksOption = PACKS,
) -> None:
    """Find which part of an agent is to blame for its failed trials.

    Each failed trial is run again with the same random choices, while code of this suite replaces (mends) some of five parts:
    proposer, verifier, commit, signal, pattern. No model behind an endpoint is called: a recorded model answers from the run.

    Exit codes: 0 every diagnosed trial is explained, 2 an error (one line says why), 3 some trial is not explained.

    For example: bench explain diagnose RUN
    """
    folder = folder_of(run)
    manifest, records = read_manifest(folder), latest(read_trials(folder))
    if not records:
        raise ResultsError(f"{folder}: no trial has ended yet; go on with its bench run")
    failed = [record for record in records if is_failed(record)]
    chosen = [record_of(folder, trial)] if trial else sample_evenly(failed, most)
    left_out = [Diagnosis(record, reason) for record in chosen if (reason := why_not_rerun(record, manifest))]
    rerunnable = [record for record in chosen if not why_not_rerun(record, manifest)]
    packs = packs_of(scenarios, folder, err)
    diagnoses = left_out + loop.run_whole(_diagnose(rerunnable_trials(folder, rerunnable, packs) if rerunnable else []))
    if prints_json:
        out.print(as_json(folder.name, len(failed), diagnoses))
    else:
        out.print("\n".join(trial_lines(diagnoses[0]) if trial else diagnosis_lines(folder.name, len(failed), diagnoses)))
    raise typer.Exit(0 if all(diagnosis.is_explained for diagnosis in diagnoses) else UNEXPLAINED_EXIT_CODE)


async def _diagnose(originals: list[RerunnableTrial]) -> list[Diagnosis]:
    """Diagnose the trials, and show the progress."""
    diagnoses = []
    with err.showing_progress() as show:
        for number, original in enumerate(originals, 1):
            show(f"trial {number} of {len(originals)}")
            diagnoses.append(await diagnose_trial(original))
    return diagnoses


def sample_evenly(records: list[TrialRecord], most: int) -> list[TrialRecord]:
    """Return all records, or `most` records at equal distances if there are more."""
    if len(records) <= most:
        return records
    return [records[number * len(records) // most] for number in range(most)]
