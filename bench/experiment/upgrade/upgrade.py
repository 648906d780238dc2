"""Carries a run's folder over to the present format: first its words, then, by a replay, what the old format did not keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import BenchError, ResultsError
from bench.experiment.config import Config
from bench.experiment.files import FORMAT, MANIFEST, TRIALS, lines_of
from bench.experiment.manifest import joint_digest
from bench.experiment.matrix import Matrix, TrialSpec, build_matrix
from bench.experiment.reading import read_manifest, read_texts
from bench.experiment.record import RECORD, SessionRecord, TrialRecord
from bench.experiment.recording import recorded_entries
from bench.experiment.store import RunWriter
from bench.experiment.trial import run_trial
from bench.experiment.untrusted import permission
from bench.experiment.upgrade import format_2
from bench.experiment.upgrade.replay import Differs, completed
from bench.runtime.loop import run
from bench.runtime.slots import Slots
from bench.wording import first_violation

Arm = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class UpgradeResult:
    """What became of a run: its folder, where the old files lie now, how many trials it has, how many of them were completed by
    a replay, and why the first other one was not."""

    folder: Path
    old: Path
    trials: int
    replayed: int
    obstacle: str


def upgrade(folder: Path, packs: Sequence[Path]) -> UpgradeResult | None:
    """Carry a run over; None where it has the present format. Raises ResultsError where it cannot be read or written.

    The old folder is renamed only when the new one is whole.
    """
    old = read_manifest(folder, versions=(2, FORMAT))
    if old["format"] == FORMAT:
        return None
    new, aside = folder.with_name(f"{folder.name}.upgrading"), folder.with_name(f"{folder.name}.format-2")
    if new.exists() or aside.exists():
        raise ResultsError(f"{new if new.exists() else aside}: is in the way of an upgrade; move it, and run the command again")
    records, texts = list(_records(folder)), read_texts(folder)
    standing = {record.id: record for record in records if isinstance(record, TrialRecord)}
    manifest = _translated(folder, old)
    _write(new, manifest, records, texts)
    matrix, obstacle = _matrix(new, manifest, packs, max((record.repetition for record in standing.values()), default=1))
    replays = run(_replays(matrix, standing.values())) if matrix else {}
    carried = {key: _completed(record, replays.get(_arm(record))) for key, record in standing.items()}
    failed = [reason for _, reason in carried.values() if reason]
    if matrix and not failed:
        manifest = _of_the_present(manifest, matrix)
    for file in new.iterdir():
        file.unlink()
    _write(new, manifest, [_standing(record, carried) for record in records], texts)
    folder.rename(aside)
    new.rename(folder)
    return UpgradeResult(folder, aside, len(carried), len(carried) - len(failed), obstacle or next(iter(failed), ""))


def _translated(folder: Path, old: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return format_2.manifest(old)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ResultsError(f"{folder / MANIFEST}: holds what no run writes; restore the file from a copy") from error


def _records(folder: Path) -> Iterator[TrialRecord | SessionRecord]:
    for number, line in lines_of(folder / TRIALS):
        try:
            value = json.loads(line)
            yield RECORD.validate_python(format_2.trial(value) if value["kind"] == "trial" else value)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ResultsError(f"{folder / TRIALS}: line {number} is damaged; restore the file from a copy") from error


def _write(
    folder: Path, manifest: Mapping[str, Any], records: Sequence[TrialRecord | SessionRecord], texts: Mapping[str, str]
) -> None:
    writer = RunWriter(folder, manifest)
    try:
        writer.add_texts(texts)
        for record in records:
            if isinstance(record, SessionRecord):
                writer.note(record)
                continue
            for response in format_2.responses(record, manifest["models"]):
                writer.respond(response, {})
            writer.add(record, {})
    finally:
        writer.close()


def _matrix(folder: Path, manifest: Mapping[str, Any], packs: Sequence[Path], repetitions: int) -> tuple[Matrix | None, str]:
    """The run's own experiment, its models replayed; or why there can be none: a pack, a framework or a guard is not here."""
    values = {**manifest["config"], "model": recorded_entries(folder), "repetitions": repetitions}
    try:
        config = Config.model_validate(values)
        if any(entry.command for entry in config.architecture.values()):  # the run may be a stranger's
            return None, "its agents are commands, which an upgrade starts none of"
        matrix = build_matrix(config, packs, code_digest="")
        permission(matrix)
        return matrix, ""
    except ValidationError as error:
        return None, first_violation(error).line
    except (BenchError, ValueError) as error:
        return None, str(error)


async def _replays(matrix: Matrix, records: Iterable[TrialRecord]) -> dict[Arm, TrialRecord]:
    wanted = set(map(_arm, records))
    graders, replays = permission(matrix).graders, dict[Arm, TrialRecord]()
    for spec in matrix.specs:
        if _arm(spec) in wanted:
            replays[_arm(spec)] = (await run_trial(spec, matrix, Slots(), graders[spec.model])).record
    return replays


def _arm(of: TrialRecord | TrialSpec) -> Arm:
    plan = of.plan if isinstance(of, TrialRecord) else of.plan.name
    return of.scenario, of.architecture, of.model, plan, of.repetition


def _completed(record: TrialRecord, replay: TrialRecord | None) -> tuple[TrialRecord, str]:
    """The record with what its replay knows; and why it has none of it."""
    if replay is None:
        return record, f"{_arm(record)} was not replayed"
    if replay.grade != record.grade or replay.tokens != record.tokens:
        return record, f"a replay of {_arm(record)} came to another end: {replay.outcome} {replay.reason}".rstrip()
    try:
        return replace(record, events=completed(record.events, replay.events)), ""
    except Differs as difference:
        return record, f"a replay of {_arm(record)} went another way: {difference}"


def _standing(
    record: TrialRecord | SessionRecord, carried: Mapping[str, tuple[TrialRecord, str]]
) -> TrialRecord | SessionRecord:
    """What is written in a record's place: an error that a later record of the same trial superseded stays as it is."""
    if not isinstance(record, TrialRecord):
        return record
    completed_record, _ = carried[record.id]
    return completed_record if completed_record.outcome == record.outcome else record


def _of_the_present(manifest: Mapping[str, Any], matrix: Matrix) -> dict[str, Any]:
    """Every trial went as it had: so the packs ask and grade now what they did then."""
    scenarios = dict(manifest["scenarios"])
    for name, instances in matrix.packs.items():
        digests = {
            "asked": joint_digest([scenario.asked for scenario in instances]),
            "graded_by": joint_digest([scenario.graded_by for scenario in instances]),
        }
        scenarios[name] = {**scenarios[name], **digests}
    return {**manifest, "scenarios": scenarios}
