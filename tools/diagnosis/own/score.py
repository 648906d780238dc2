"""The command `bench diagnose`, as a user types it, on trials that an edit of a user's own package breaks.

A trial counts if the package without the edit is unharmed on the same draws.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli_w

from bench.record.reading import read_trials
from bench.record.record import TrialRecord, latest
from bench.rerun.diagnose import is_failed
from diagnosis.own.planted import HARMLESS, WEAKNESSES, Base, edits_of, write_package
from diagnosis.score import PROVOKED, share_of

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "reports" / "diagnosis" / "own_packages.csv"
"""Each trial that was diagnosed for docs/diagnosing.md."""
TRIALS = 4
"""The most trials of an edit, of different customers where there are."""
BASES: tuple[Base, ...] = ("copy", "clerk")
CRASH = {"point": "process", "effect": "unacknowledged", "probability": 0.05}
RUN = "own"


@dataclass(frozen=True)
class CommandTrial:
    """A trial that an edit breaks, as the command diagnosed it.

    edit       the weakness, or the harmless edit
    part       the part that has the edit
    beside     the part of the weakness beside a harmless edit; "" for a weakness
    blamed     the parts that are blamed, in words
    not_asked  the parts that are said not to have been asked, in words
    """

    edit: str
    base: str
    part: str
    beside: str
    instance: str
    repetition: int
    blamed: str
    not_asked: str

    @property
    def is_asked(self) -> bool:
        return self.part not in self.not_asked.split(" and ")

    @property
    def is_right(self) -> bool:
        """Whether the weak part is named and no other; where it cannot be mended, whether it is said not to have been asked
        and no other part is blamed."""
        return self.blamed == (self.part if self.is_asked else "")

    @property
    def blames_harmless(self) -> bool:
        return self.part in self.blamed.split(" and ")


def score(most: int = TRIALS, instances: int = 40, repetitions: int = 2) -> Iterator[CommandTrial]:
    """Run all packages, and yield the trials that the command diagnosed."""
    with TemporaryDirectory() as folder:
        yield from _scored(Path(folder), most, instances, repetitions)


def _scored(folder: Path, most: int, instances: int, repetitions: int) -> Iterator[CommandTrial]:
    packages: dict[str, tuple[str, Base]] = {f"careful_{base}": ("", base) for base in BASES}
    packages |= {f"own_{number}": (name, edits_of(name)[0].base) for number, name in enumerate((*WEAKNESSES, *HARMLESS))}
    for package, (name, base) in packages.items():
        write_package(folder, package, base, edits_of(name) if name else ())
    config = _config(packages, instances, repetitions)
    (folder / f"{RUN}.toml").write_text(tomli_w.dumps(config), encoding="utf-8")
    bench(folder, "run", f"{RUN}.toml", "--name", RUN, "--scenarios", str(ROOT / "scenarios"), exits=(0, 1))
    records = latest(read_trials(folder / "results" / RUN))
    unharmed = {(record.architecture, *_draws(record)) for record in records if not is_failed(record)}
    for package, (name, base) in packages.items():
        broken = [
            record
            for record in records
            if record.architecture == package and is_failed(record) and (f"careful_{base}", *_draws(record)) in unharmed
        ]
        for record in _of_different_instances(broken)[: most if name else 0]:
            yield _diagnosed(folder, record, name, base)


def _config(packages: Mapping[str, tuple[str, Base]], instances: int, repetitions: int) -> dict[str, Any]:
    architectures = {
        package: {"base": f"{package}.agent:careful", **({"remedies": True} if base == "copy" else {})}
        for package, (_, base) in packages.items()
    }
    return {
        "name": RUN,
        "scenarios": ["contract_renewal"],
        "architectures": list(packages),
        "models": ["m"],
        "plans": ["provoked"],
        "instances": instances,
        "repetitions": repetitions,
        "seed": 20261128,
        "architecture": architectures,
        "model": {"m": {"kind": "simulated"}},
        "plan": {"provoked": {"faults": [*PROVOKED, CRASH]}},
    }


def _draws(record: TrialRecord) -> tuple[object, ...]:
    return record.instance, record.plan, record.repetition


def _of_different_instances(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the records, the first of each instance before any second."""
    return sorted(records, key=lambda record: (record.repetition, str(record.instance)))


def _diagnosed(folder: Path, record: TrialRecord, name: str, base: Base) -> CommandTrial:
    printed = bench(folder, "diagnose", RUN, "--trial", record.id, "--json", exits=(0, 3))
    [trial] = json.loads(printed)["trials"]
    if trial["undiagnosable"]:
        raise ValueError(f"{name}: trial {record.id}: {trial['undiagnosable']}")
    edit, *beside = edits_of(name)
    blamed, not_asked = (" and ".join(sorted(trial[key])) for key in ("blamed", "not_asked"))
    part = beside[0].part if beside else ""
    return CommandTrial(name, base, edit.part, part, str(record.instance), record.repetition, blamed, not_asked)


def bench(folder: Path, *words: str, exits: tuple[int, ...] = (0,)) -> str:
    """Run a command of the suite in a folder, and return what it printed. Raises RuntimeError if it ends otherwise."""
    command = [str(Path(sys.executable).parent / "bench"), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in exits:
        raise RuntimeError(f"bench {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def read_scored() -> list[CommandTrial]:
    """Return the trials of the committed table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [CommandTrial(**{**row, "repetition": int(row["repetition"])}) for row in csv.DictReader(file)]  # type: ignore[arg-type]


def write_scored(trials: Iterable[CommandTrial]) -> None:
    """Write the committed table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(CommandTrial)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, trials))


def rows(trials: Sequence[CommandTrial]) -> Iterator[str]:
    """Yield the rows of the page's table, one for each part."""
    for part in ("commit", "verifier", "signal", "pattern"):
        planted = [each for each in trials if not each.beside and each.part == part]
        harmless = [each for each in trials if each.beside and each.part == part]
        edits = f"{len({each.edit for each in planted})} and {len({each.edit for each in harmless})}"
        asked = sum(each.is_asked for each in planted)
        blamed = f"{sum(each.blames_harmless for each in harmless)} of {len(harmless)}"
        yield f"| {part} | {edits} | {asked} of {len(planted)} | {right(planted)} | {blamed} |"


def right(trials: Sequence[CommandTrial]) -> str:
    return share_of([(each.instance, each.is_right) for each in trials]) if trials else "0 of 0"


def summary(trials: Sequence[CommandTrial]) -> tuple[str, str, str]:
    """Return how often a weakness that could be mended is named exactly, how often of a weakness that could not be mended
    nothing is blamed, and how often a harmless edit is blamed."""
    planted = [each for each in trials if not each.beside]
    harmless = [(each.instance, each.blames_harmless) for each in trials if each.beside]
    asked, not_asked = ([each for each in planted if each.is_asked == is_asked] for is_asked in (True, False))
    return right(asked), right(not_asked), share_of(harmless) if harmless else "0 of 0"
