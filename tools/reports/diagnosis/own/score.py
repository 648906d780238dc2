"""The command `bench explain diagnose`, as a user types it, on trials that an edit of a user's own package breaks.

A trial counts if the package without the edit is unharmed on the same draws.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli_w

from bench.record.reading import read_trials
from bench.record.record import TrialRecord, latest
from bench.rerun.diagnose import is_failed
from diagnosis.own.planted import HARMLESS, WEAKNESSES, Base, Edit, edits_of, write_package
from diagnosis.score import PROVOKED, share_of

ROOT = Path(__file__).parents[4]
TABLE = ROOT / "reports" / "diagnosis" / "own_packages.csv"
"""Each trial that was diagnosed for docs/diagnosing.md."""
Draws = tuple[str, int]
"""(instance, repetition): what is drawn in a trial."""
TRIALS = 3
"""The most trials of an edit."""
AT_ONCE = 2
"""Packages that are run at the same time."""
BASES: tuple[Base, ...] = ("copy", "clerk")
CRASH = {"point": "process", "effect": "unacknowledged", "probability": 0.05}


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
    """Run all packages, and yield the trials that the command diagnosed: of each edit so many at most."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        bench_runs = BenchRuns(Path(folder), instances, repetitions)
        unharmed = dict(zip(BASES, pool.map(bench_runs.unharmed, BASES), strict=True))
        edits = (*WEAKNESSES, *HARMLESS)
        for trials in pool.map(lambda name: bench_runs.diagnosed(name, unharmed[edits_of(name)[0].base], most), edits):
            yield from trials


@dataclass(frozen=True)
class BenchRuns:
    """Runs of packages in a folder, as a user would run them: so many instances, one repetition after another."""

    folder: Path
    instances: int
    repetitions: int

    def unharmed(self, base: Base) -> frozenset[Draws]:
        """Return the draws on which a package without an edit comes to no harm."""
        records = self._records(f"careful_{base}", base, ())
        return frozenset(_draws(record) for each in records for record in each if not is_failed(record))

    def diagnosed(self, name: str, unharmed: Collection[Draws], most: int) -> list[CommandTrial]:
        """Return the trials that an edit breaks, as the command diagnoses them."""
        edits = edits_of(name)
        package = f"own_{[*WEAKNESSES, *HARMLESS].index(name)}"
        broken: list[TrialRecord] = []
        for records in self._records(package, edits[0].base, edits):
            broken += [record for record in records if is_failed(record) and _draws(record) in unharmed]
            if len(broken) >= most:
                break
        return [self._diagnosed(f"{package}_{record.repetition}", record, name) for record in broken[:most]]

    def _records(self, package: str, base: Base, edits: Sequence[Edit]) -> Iterator[list[TrialRecord]]:
        """Yield the trials of a package, repetition by repetition. A trial in which the edited code raises does not count."""
        write_package(self.folder, package, base, edits)
        config = self.folder / f"{package}.toml"
        config.write_text(tomli_w.dumps(_config(package, self.instances)), encoding="utf-8")
        for number in range(1, self.repetitions + 1):
            name = f"{package}_{number}"
            part = ("--name", name, "--repetitions", f"{number}-{number}", "--scenarios", str(ROOT / "scenarios"))
            bench(self.folder, "run", config.name, *part, exits=(0, 1))
            yield latest(read_trials(self.folder / "results" / name))

    def _diagnosed(self, run: str, record: TrialRecord, name: str) -> CommandTrial:
        printed = bench(self.folder, "explain", "diagnose", run, "--trial", record.id, "--json", exits=(0, 3))
        [trial] = json.loads(printed)["trials"]
        if trial["undiagnosable"]:
            raise ValueError(f"{name}: trial {record.id}: {trial['undiagnosable']}")
        edit, *beside = edits_of(name)
        blamed, not_asked = (" and ".join(sorted(trial[key])) for key in ("blamed", "not_asked"))
        part = beside[0].part if beside else ""
        return CommandTrial(name, edit.base, edit.part, part, str(record.instance), record.repetition, blamed, not_asked)


def _config(package: str, instances: int) -> dict[str, Any]:
    return {
        "name": package,
        "scenarios": ["contract_renewal"],
        "architectures": ["mine"],
        "models": ["m"],
        "plans": ["provoked"],
        "instances": instances,
        "repetitions": 1,
        "seed": 20261128,
        "architecture": {"mine": {"base": f"{package}.agent:careful"}},
        "model": {"m": {"kind": "simulated"}},
        "plan": {"provoked": {"faults": [*PROVOKED, CRASH]}},
    }


def _draws(record: TrialRecord) -> Draws:
    return str(record.instance), record.repetition


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
