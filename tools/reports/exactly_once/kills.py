"""Real SIGKILLs of real processes beside the same crashes in process: the same draws, so the same worlds at the end."""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from exactly_once.lives import End, lived

from bench.record.config import FAULT_FREE
from bench.record.world_events import WorldEnded
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, TrialSpec
from bench.run.experiment.trial import run_trial
from bench.run.experiment.untrusted import permission
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots


@dataclass(frozen=True)
class Killed:
    """One architecture: how many trials there were, how many SIGKILLs in them, and in how many of the trials the tables of the
    world, the damage, the number of lives and the grade were the same as in process."""

    architecture: str
    kills: int
    trials: int
    agree: int


def killed(matrix: Matrix, architecture: str, kills: int) -> Killed:
    """Run trials of an architecture until it was killed so often, and return in how many of them the end was the same as in one
    process."""
    graders = permission(matrix).graders
    done = trials = agree = 0
    for spec in in_order(matrix, architecture):
        if done >= kills:
            break
        with tempfile.TemporaryDirectory() as folder:
            end, by_signal = lived(matrix, spec, Path(folder))
        done, trials = done + by_signal, trials + 1
        agree += end == in_process(matrix, spec, graders[spec.model]) and end.lives == by_signal + 1
    return Killed(architecture, done, trials, agree)


def in_order(matrix: Matrix, architecture: str) -> Sequence[TrialSpec]:
    """Return the trials under faults, in an order that is drawn once for all."""
    specs = [spec for spec in matrix.specs if spec.architecture == architecture and spec.plan.name != FAULT_FREE]
    return random.Random(14).sample(specs, len(specs))


def in_process(matrix: Matrix, spec: TrialSpec, graders: Graders) -> End:
    """Return the end of the same trial as `bench run` has it, without a SIGKILL."""
    record = run(run_trial(spec, matrix, Slots(), graders)).record
    ended = next(event for event in record.events if isinstance(event, WorldEnded))
    return End(ended.digest, ended.damage, ended.lives, record.outcome == "solved")


def all_killed(matrix: Matrix, kills: int) -> Iterator[Killed]:
    for architecture in matrix.config.architectures:
        yield killed(matrix, architecture, kills)


def write_kills(file: Path, kills: Iterable[Killed]) -> None:
    """Write a row for each kill as soon as it is there. The file gets its name when it is whole."""
    new = file.with_suffix(".new")
    with new.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, [field.name for field in fields(Killed)], lineterminator="\n")
        writer.writeheader()
        for kill in kills:
            writer.writerow(asdict(kill))
            out.flush()
    new.replace(file)


def read_kills(file: Path) -> list[Killed]:
    with file.open(encoding="utf-8", newline="") as rows:
        return [
            Killed(row["architecture"], *(int(row[name]) for name in ("kills", "trials", "agree")))
            for row in csv.DictReader(rows)
        ]
