"""Merge parts of one run that were recorded separately: its shards, or parts by instance, plan or repetition.

    merged = merge_parts([Path("results/mine-shard-1-of-2"), Path("results/mine-shard-2-of-2")], Path("results/mine"))

The trials, responses and texts stay unchanged. Only the chains of digests are made anew, and the manifest names the parts.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from bench.common.errors import ResultsError
from bench.record.agreement import PARTS, NamedParts, differences, key_that_differs
from bench.record.archive import archive_path
from bench.record.files import GRADES, holds
from bench.record.manifest import BaselineGrades, Manifest, ManifestPack, Merged
from bench.record.provenance import now
from bench.record.reading import read_manifest, read_records, read_responses, text_lines
from bench.record.record import SessionRecord, TrialRecord
from bench.record.store import RunWriter, set_aside
from bench.record.verify import RunCheck, whole_digest
from bench.run.experiment.new_manifest import joint_digest
from bench.scenario import scenario_key

Entry = TypeVar("Entry")
COMPARED_VALUES: Mapping[str, NamedParts] = {
    **PARTS,
    "version of what is asked by the scenario": lambda manifest: _digests_by_instance(manifest, "asked"),
    "version of the reference of the scenario": lambda manifest: _digests_by_instance(manifest, "reference"),
    "version of the grader of the scenario": lambda manifest: _digests_by_instance(manifest, "graded_by"),
    "variant of the scenario": lambda manifest: {name: pack.variant for name, pack in manifest.scenarios.items()},
    "plan": lambda manifest: manifest.config.plan,
    "variant of an architecture": lambda manifest: manifest.config.architecture,
}
KEYS_OF_PARTS = {"scenarios", "architectures", "models", "plans", "architecture", "plan", "repetitions"}
"""The keys of a config in which the parts of a run can differ."""


@dataclass(frozen=True)
class RunPart:
    """A checked part of a run. `trials` maps the ids of trials to their outcomes; `tasks` holds (model, scenario, instance,
    repetition)."""

    folder: Path
    manifest: Manifest
    trials: Mapping[str, str]
    tasks: frozenset[tuple[str, str, str, int]]

    @property
    def source(self) -> Merged:
        """The part's entry in the manifest of the merged run."""
        fields = {"name": self.manifest.name, "started": self.manifest.started, "portion": self.manifest.portion}
        return Merged(
            **fields,
            trials=len(self.trials),
            digest=whole_digest(self.folder),
            commit=self.manifest.code.commit,
            machine=self.manifest.machine,
        )


def merge_parts(folders: Sequence[Path], target: Path) -> tuple[int, int]:
    """Write one run that contains all trials of these parts.

    Args:
        folders: The parts' folders, or the folders that their archives stand for. Their order decides the order of names alone.
        target: The folder of the new run. It is made whole or not at all.

    Returns:
        The number of its trials that did not end in an error, and the number of trials of a whole run.

    Raises:
        ResultsError: The parts are not of a single run, a trial is in two parts, different code ran the trials of one part, a
            part is damaged or not closed, or the target exists.
    """
    if target.exists() or archive_path(target).exists():
        raise ResultsError(f"{target}: exists already; give another --name")
    parts = [_check(folder) for folder in folders]
    for first, second in itertools.combinations(parts, 2):
        _refuse_pair(first, second)
    manifest = _manifest(parts, target.name)
    total = _trials_of_whole_run(manifest)
    ended = sum(outcome != "error" for part in parts for outcome in part.trials.values())
    unfinished = target.with_name(f".{target.name}.half")
    if unfinished.exists():  # a merge was killed; if it is still writing, its lock stops this merge
        shutil.rmtree(set_aside(unfinished))
    writer = RunWriter(unfinished, manifest)
    try:
        for part in sorted(parts, key=lambda part: min(part.trials)):
            _copy(part.folder, writer)
        note = f"merged of {len(parts)} parts: {', '.join(part.manifest.name for part in parts)}"
        writer.note(SessionRecord(now(), "began", note))
        ending = "complete" if ended == total else f"stopped: {total - ended} trials are missing"
        writer.note(SessionRecord(now(), "ended", ending, mark=writer.mark if ended == total else None))
        _rename(unfinished, target)  # while it is locked: another merge would take an unlocked folder for a killed merge's
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    finally:
        writer.close()
    return ended, total


def _rename(unfinished: Path, target: Path) -> None:
    """Give the finished run its name. Raises ResultsError if that is impossible."""
    try:
        unfinished.rename(target)
    except OSError as error:
        problem = "exists already; give another --name" if target.exists() else f"cannot be written: {error.strerror}"
        raise ResultsError(f"{target}: {problem}") from error


def _check(folder: Path) -> RunPart:
    """Check a part of a run and return it. Raises ResultsError if the part is damaged, was graded anew, has no end or no trial,
    or if two versions of the code ran its trials."""
    manifest, check = read_manifest(folder), RunCheck(folder)
    outcomes: dict[str, str] = {}
    tasks: set[tuple[str, str, str, int]] = set()
    for record in check:
        if isinstance(record, TrialRecord):
            outcomes[record.id] = record.outcome
            tasks.add((record.model, record.scenario, record.instance, record.repetition))
    checked = check.checked
    if checked.defects:
        raise ResultsError(f"{checked.defects[0].text}; see `bench verify {folder}`; restore the file from a copy")
    if not checked.has_end:
        raise ResultsError(f"{folder}: has {checked.ending}; let its command go on to an end, then merge")
    if manifest.other_code:
        raise ResultsError(f"{folder}: other code went on with it, and different code is not merged; leave it out")
    if holds(folder, GRADES):
        raise ResultsError(f"{folder}: was graded anew; merge the parts without {GRADES}, then `bench more regrade` the whole")
    if not outcomes:
        raise ResultsError(f"{folder}: holds no trial; leave it out, or let its command go on")
    return RunPart(folder, manifest, outcomes, frozenset(tasks))


def _refuse_pair(part: RunPart, other: RunPart) -> None:
    """Raise ResultsError if two parts are not parts of one run, if both contain the same trial, or if both contain trials of a
    task whose replies all arms must share (`cache = true`)."""
    _refuse_unlike(part.manifest, other.manifest)
    if shared := len(part.trials.keys() & other.trials.keys()):
        problem = f"{part.folder} and {other.folder} share {shared} trial{'' if shared == 1 else 's'}"
        raise ResultsError(f"{problem}; name each part once")
    for model, scenario, instance, repetition in sorted(part.tasks & other.tasks):
        if part.manifest.models[model].cache:
            task = f"{scenario}/{instance}" if instance else scenario
            problem = f"{part.folder} and {other.folder} both hold trials of {task}, repetition {repetition}"
            why = f"'{model}' gives equal requests of all arms one reply (cache = true), and these were asked apart"
            raise ResultsError(f"{problem}: {why}; compare them by `bench report`, which takes several runs")


def _copy(folder: Path, writer: RunWriter) -> None:
    """Append all records of a part, without the marks of its sessions' ends: the merged run has an end of its own."""
    for line in text_lines(folder):
        writer.add_texts({line["digest"]: line["text"]})
    for response in read_responses(folder):
        writer.respond(response, {})
    for record in read_records(folder):
        if isinstance(record, SessionRecord):
            writer.note(replace(record, mark=None))
        else:
            writer.add(record, {})


def _trials_of_whole_run(manifest: Manifest) -> int:
    """Return the number of trials of the whole run."""
    config = manifest.config
    tasks = sum(len(pack.instances) * len(config.plans_on(name)) for name, pack in manifest.scenarios.items())
    return tasks * len(config.architectures) * len(config.models) * config.repetitions


def _manifest(parts: Sequence[RunPart], name: str) -> Manifest:
    """Return the manifest of the whole run: the values that all parts share, and the entries of each part."""
    manifests = [part.manifest for part in parts]
    configs = [manifest.config for manifest in manifests]
    config: dict[str, Any] = {
        key: tuple(dict.fromkeys(itertools.chain.from_iterable(getattr(config, key) for config in configs)))
        for key in ("scenarios", "architectures", "models", "plans")
    }
    config |= {key: _unite(getattr(config, key) for config in configs) for key in ("architecture", "plan")}
    tables = ("models", "concurrency", "recordings", "architectures", "parts", "packages", "prepared")
    changed: dict[str, Any] = {key: _unite(getattr(manifest, key) for manifest in manifests) for key in tables}
    packs = dict.fromkeys(itertools.chain.from_iterable(manifest.scenarios for manifest in manifests))
    return manifests[0].model_copy(
        update=changed
        | {
            "name": name,
            "started": min(manifest.started for manifest in manifests),
            "portion": "",
            "config": configs[0].model_copy(update={**config, "repetitions": max(config.repetitions for config in configs)}),
            "scenarios": {
                pack: _pack([manifest.scenarios[pack] for manifest in manifests if pack in manifest.scenarios])
                for pack in packs
            },
            "sandbox": _joint_sandbox([manifest.sandbox for manifest in manifests]),
            "merged": tuple(part.source for part in parts),
        }
    )


def _unite(tables: Iterable[Mapping[str, Entry]]) -> dict[str, Entry]:
    """Return one table with the entries of all tables. Of entries with one name the last is taken."""
    return {name: entry for table in tables for name, entry in table.items()}


def _joint_sandbox(sandboxes: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the state of each guard of the sandbox: "in force" only if it was in force in every merged recording."""
    not_in_force = [{name: state for name, state in sandbox.items() if state != "in force"} for sandbox in sandboxes]
    return _unite([*sandboxes, *not_in_force])


def _pack(packs: Sequence[ManifestPack]) -> ManifestPack:
    """Return the manifest's entry of a pack with the instances of all parts, whose entries are `packs`."""
    different = list({pack.instances: pack for pack in sorted(packs, key=lambda pack: bool(pack.reference))}.values())
    if len(different) == 1:
        return different[0]
    asked, grading, references = (_by_instance(different, kind) for kind in ("asked", "graded_by", "reference"))
    baselines = [pack.baseline for pack in different if pack.baseline]
    is_known = len(baselines) == len(different) and sum(baseline.of for baseline in baselines) == len(asked)
    instances = sum(len(pack.instances) for pack in different)
    tokens = sum(pack.document_tokens * len(pack.instances) for pack in different) / instances
    changed = {
        "instances": tuple(asked),
        "asked": joint_digest(list(asked.values())),
        "asked_by_instance": asked,
        "graded_by": joint_digest(list(grading.values())),
        "graded_by_instance": grading,
        "reference": joint_digest(list(references.values())) if all(references.values()) else None,
        "reference_by_instance": references if all(references.values()) else {},
        "document_tokens": round(tokens),
        "baseline": _sum(baselines) if is_known else None,
    }
    return different[0].model_copy(update=changed)


def _by_instance(packs: Sequence[ManifestPack], kind: str) -> dict[str, str]:
    """Return the digest of this kind (`asked`, `graded_by` or `reference`) of each instance."""
    return {instance: pack.digests(instance)[kind] for pack in packs for instance in pack.instances}


def _sum(baselines: Sequence[BaselineGrades]) -> BaselineGrades:
    """Return the baseline grades of all instances of these."""
    instances = sum(baseline.of for baseline in baselines)
    score = sum(baseline.score * baseline.of for baseline in baselines) / instances
    return BaselineGrades(solved=sum(baseline.solved for baseline in baselines), of=instances, score=score)


def _refuse_unlike(first: Manifest, second: Manifest) -> None:
    """Raise ResultsError if two runs are not parts of one run: the entries that both manifests have must be equal."""
    for difference in differences(first, second, KEYS_OF_PARTS, COMPARED_VALUES, all_names=False):
        detail = ": {} is {} and {}".format(*key_that_differs(difference)) if difference.kind == "config" else ""
        problem = f"{first.name} and {second.name} are not parts of a single run: each has another {difference.what}{detail}"
        raise ResultsError(f"{problem}; `bench report {first.name} {second.name}` shows what they share")


def _digests_by_instance(manifest: Manifest, kind: str) -> dict[str, object]:
    """Return the digest of this kind of each instance that has one, by scenario and instance."""
    return {
        scenario_key(name, instance): digest
        for name, pack in manifest.scenarios.items()
        for instance in pack.instances
        if (digest := pack.digests(instance)[kind])
    }
