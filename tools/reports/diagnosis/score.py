"""Trials that a planted weakness breaks, diagnosed: is what was planted named, that and nothing else?

A trial counts if the agent without the weakness is unharmed on the same draws. With two weaknesses each has to matter: without
either the trial ends otherwise.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path

from bench.common.paths import PACKS
from bench.read.analysis.statistics import exact_share_by_instance
from bench.record.events import Judged
from bench.record.record import TrialRecord
from bench.record.world_events import Stepped, ToolCalled
from bench.rerun.diagnose import Rerun, diagnose, is_failed, rerun
from bench.rerun.mended_parts import MendedPart
from bench.rerun.mends import MendingStart
from bench.rerun.rerun import RerunArm, RerunnableTrial
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.models.simulated import SimulatedSettings
from bench.run.trial import loop
from diagnosis.weaknesses import DOUBLE, HARMLESS, MISTAKEN, SINGLE, UNHEARD, Mistaken, Plant, agent_with, parts_of

TABLE = Path(__file__).parents[3] / "reports" / "diagnosis" / "trials.csv"
"""Each trial that was diagnosed for docs/diagnosing.md."""
WEAKNESSES: Mapping[str, tuple[Plant, ...]] = {**SINGLE, **DOUBLE, **HARMLESS}
TRIALS = 20
"""The most trials of a weakness."""
PROVOKED = [
    {"point": "tool", "effect": "lost_ack", "tool": "*", "probability": 0.2},
    {"point": "tool", "effect": "second_writer", "tool": "*", "probability": 0.2},
    {"point": "tool", "effect": "error", "tool": "*", "probability": 0.1},
    {"point": "output", "effect": "wrong_value", "probability": 0.3},
]
"""The failures that provoke a weakness; the careful agent comes through most of them."""


@dataclass(frozen=True)
class ScoredTrial:
    """A trial that a weakness breaks.

    blamed         the parts that its diagnosis blames, in words
    last_rejected  the part that the baseline blames
    """

    weakness: str
    instance: str
    repetition: int
    blamed: str
    last_rejected: str

    @property
    def is_exact(self) -> bool:
        return self.blamed == planted_in(self.weakness)


def planted_in(weakness: str) -> str:
    """Return the parts that have to be named, in words. A harmless edit is not among them."""
    return in_words(parts_of([plant for plant in WEAKNESSES[weakness] if plant != UNHEARD]))


def in_words(parts: Iterable[MendedPart]) -> str:
    return " and ".join(sorted(parts))


def matrix_of(repetitions: int = 4, instances: int = 40) -> Matrix:
    """Return the careful agent's trials."""
    settings = Config.model_validate(
        {
            "name": "planted",
            "scenarios": ["contract_renewal"],
            "architectures": ["careful"],
            "architecture": {"careful": {"base": "state_machine", "remedies": True}},
            "models": ["m"],
            "model": {"m": {"kind": "simulated"}},
            "plans": ["provoked"],
            "plan": {"provoked": {"faults": PROVOKED}},
            "instances": instances,
            "repetitions": repetitions,
            "seed": 20261125,
        }
    )
    return build_matrix(settings, PACKS, "code")


def scored(matrix: Matrix, weakness: str, most: int = TRIALS) -> Iterator[ScoredTrial]:
    """Yield trials that a weakness breaks, diagnosed."""
    plants = WEAKNESSES[weakness]
    for original in islice(broken(matrix, plants), most):
        record, diagnosis = original.record, loop.run(diagnose(original, agent_with(plants)))
        blamed, baseline = in_words(diagnosis.blamed), last_rejected(record)
        yield ScoredTrial(weakness, str(record.instance), record.repetition, blamed, baseline)


def read_scored() -> list[ScoredTrial]:
    """Return the trials of the committed table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows_read = list(csv.reader(file))[1:]
    return [ScoredTrial(weakness, instance, int(number), *parts) for weakness, instance, number, *parts in rows_read]


def write_scored(trials: Iterable[ScoredTrial]) -> None:
    """Write the committed table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(ScoredTrial)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, trials))


def rows(trials: Sequence[ScoredTrial]) -> Iterator[str]:
    """Yield the rows of the page's table."""
    for weakness in WEAKNESSES:
        planted_trials, planted = [each for each in trials if each.weakness == weakness], planted_in(weakness)
        baselines = (
            sum(planted == "proposer" for _ in planted_trials),
            sum(each.last_rejected == planted for each in planted_trials),
        )
        cells = (
            weakness,
            planted,
            named_exactly(planted_trials),
            *(f"{count} of {len(planted_trials)}" for count in baselines),
        )
        yield f"| {' | '.join(cells)} |"


def named_exactly(trials: Sequence[ScoredTrial]) -> str:
    """Return a share in words: in how many trials exactly the planted parts are named. Its interval clusters by instance."""
    return share_of([(each.instance, each.is_exact) for each in trials])


def share_of(held: Sequence[tuple[str, bool]]) -> str:
    """Return a share in words: in how many trials, each with its instance, something is true."""
    share = exact_share_by_instance([instance for instance, _ in held], [holds for _, holds in held])
    return f"{share.k} of {share.n} [{share.low:.0%}, {share.high:.0%}]"


def summary(trials: Sequence[ScoredTrial]) -> tuple[str, str, str]:
    """Return sentences on how often a single weakness is named exactly, how often two are, and how often the harmless edit is
    blamed."""
    single, double, harmless = ([each for each in trials if each.weakness in names] for names in (SINGLE, DOUBLE, HARMLESS))
    blamed = share_of([(each.instance, "signal" in each.blamed) for each in harmless])
    return named_exactly(single), named_exactly(double), blamed


def broken(matrix: Matrix, plants: tuple[Plant, ...]) -> Iterator[RerunnableTrial]:
    """Yield the trials that these weaknesses break."""
    planted = parts_of([plant for plant in plants if plant != UNHEARD])
    for spec in matrix.specs:
        arm = RerunArm(spec, replace(matrix, specs=(spec,)))
        if _run(arm, ()).entries:
            continue
        whole = _run(arm, plants)
        if not whole.entries or not is_failed(whole.result.record):
            continue
        others = [tuple(other for other in plants if other != plant) for plant in plants] if len(planted) > 1 else []
        if all(_run(arm, other).entries != whole.entries for other in others):
            yield RerunnableTrial(Path("planted"), whole.result.record, _arm(arm, plants))


def _arm(arm: RerunArm, plants: Sequence[Plant]) -> RerunArm:
    if MISTAKEN not in plants:
        return arm
    model = Mistaken("m", SimulatedSettings(), arm.matrix.scenarios)
    return RerunArm(arm.spec, replace(arm.matrix, models={"m": model}))


def _run(arm: RerunArm, plants: tuple[Plant, ...]) -> Rerun:
    return loop.run(rerun(_arm(arm, plants), agent_with(plants), frozenset(), MendingStart(), arm.spec.plan))


def last_rejected(record: TrialRecord) -> MendedPart:
    """Return the part that a baseline blames: that of the last rejected event; the proposer where none was rejected."""
    for event in reversed(record.events):
        if isinstance(event, Judged) and not event.accepted:
            return "proposer"
        if isinstance(event, ToolCalled) and event.outcome in ("refused", "failed"):
            return "commit"
        if isinstance(event, Stepped) and event.why:
            return "pattern"
    return "proposer"
