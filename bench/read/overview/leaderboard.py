"""Rankings: which arm solves most in each pack. Arms of several runs are ranked together if they can be compared; else a
sentence says why they cannot."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.read.analysis.arms import Arm, instances_of, pairs_of
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COST, LEAST_PRICED, PRICE, TOKENS
from bench.read.analysis.per_solved import PerSolved, per_solved
from bench.read.render.cells import BoundedNumber, Cell, Estimate, Rate, Spent
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.config import FAULT_FREE


@dataclass(frozen=True)
class Basis:
    """The properties that arms of one pack and fault plan must share to be ranked. `asked` has the digest of what each instance
    asks. `faults` has the plan's faults and the seed of their draws."""

    simulated: bool
    asked: tuple[tuple[str, str], ...]
    faults: str
    graded_by: str


@dataclass(frozen=True, eq=False)
class ArmOfRun:
    """An arm, with the run that it belongs to."""

    run: Run
    arm: Arm

    @property
    def name(self) -> str:
        return self.run.folder.name if self.run.folder else self.run.name

    @property
    def started(self) -> str:
        """The time at which the run began, in UTC, to the minute."""
        return self.run.manifest.started[:16].replace("T", " ")

    @property
    def plan(self) -> str:
        return self.arm.condition.plan

    @property
    def model(self) -> str:
        return self.arm.condition.model

    @property
    def label(self) -> str:
        return model_label(self.run, self.model)

    @cached_property
    def tokens(self) -> PerSolved:
        """Tokens spent per solved trial."""
        return per_solved(self.arm.trials, TOKENS.name)

    @cached_property
    def dollars(self) -> PerSolved:
        return per_solved(self.arm.trials, COST.name)

    @cached_property
    def basis(self) -> Basis:
        pack, faults = self.run.pack(self.arm.condition.scenario), self.run.config.faults_of(self.plan)
        instances = sorted(set(instances_of(self.arm.usable)))
        return Basis(
            simulated=self.run.is_simulated(self.model),
            asked=tuple((instance, pack.asks(instance)) for instance in instances),
            faults=f"seed {self.run.config.seed}: {[fault.model_dump(mode='json') for fault in faults]}" if faults else "",
            graded_by=pack.graded_by if len(instances) == len(pack.instances) else "",
        )

    @property
    def made_by(self) -> Mapping[str, object]:
        """The code and settings that determine the arm's trials: words -> a digest or a value."""
        asked = dict(self.basis.asked)
        return {
            "the model": self.model,
            "the model's settings": self.run.parameters_of(self.model).model_dump(exclude={"recording", "cache_from"}),
            "the instances": list(asked),
            "what the pack asks": list(asked.values()),
            "the grader": self.basis.graded_by,
            "the architecture's code": self.run.manifest.architectures.get(self.arm.architecture),
            "the seed": self.run.config.seed,
        }


@dataclass(frozen=True)
class Board:
    """The arms of one pack under one plan. `tables` has a ranking for each group of comparable arms. `refusals` says why a
    group is not ranked with the largest group."""

    title: str
    tables: tuple[Table, ...]
    refusals: tuple[str, ...]


def boards_of(runs: Sequence[Sequence[ArmOfRun]]) -> list[Board]:
    """Return a board for each pack and fault plan, with the arms of all runs, the oldest run first."""
    groups: dict[tuple[str, bool, str], list[ArmOfRun]] = {}
    for arm in _once(runs):
        groups.setdefault((arm.arm.condition.scenario, arm.plan != FAULT_FREE, arm.plan), []).append(arm)
    return [_board(pack, plan, groups[pack, struck, plan]) for pack, struck, plan in sorted(groups)]


def _once(runs: Sequence[Sequence[ArmOfRun]]) -> Iterator[ArmOfRun]:
    """Yield each graded arm once. Two kinds of arms are no new evidence and are left out: a replay whose recording is listed,
    and an arm that took over another run's replies and went the same in every trial."""
    names, seen = {arm.name for arms in runs for arm in arms}, set[Hashable]()
    for arm in (arms_of_run for arms in runs for arms_of_run in arms):
        recording, trials = arm.run.parameters_of(arm.model).recording, arm.arm.trials
        went = frozenset(zip(pairs_of(trials), trials["outcome"].tolist(), trials[TOKENS.name].tolist(), strict=True))
        same = arm.arm.condition.scenario, arm.plan, arm.arm.architecture, went
        if arm.arm.solved().n and same not in seen and not (recording and recording.name in names):
            seen.add(same)
            yield arm


def _board(pack: str, plan: str, arms: Sequence[ArmOfRun]) -> Board:
    groups: dict[Basis, list[ArmOfRun]] = {}
    for arm in arms:
        groups.setdefault(arm.basis, []).append(arm)
    (largest, most), *others = sorted(groups.items(), key=lambda group: -len(group[1]))
    title = f"{pack}, {'without faults' if plan == FAULT_FREE else f'fault plan {plan}'}"
    refusals = dict.fromkeys(
        f"Not ranked together: {_runs(group)}, and {_runs(most)}. {_why(largest, basis)}." for basis, group in others
    )
    return Board(title, tuple(_table(title, basis, group) for basis, group in [(largest, most), *others]), tuple(refusals))


def _runs(group: Iterable[ArmOfRun]) -> str:
    first, *others = dict.fromkeys(arm.name for arm in group)
    return f"{first} and {len(others)} more" if len(others) > 1 else " and ".join([first, *others])


def _why(basis: Basis, other: Basis) -> str:
    """Return the first reason why two groups cannot be compared."""
    asked, also = dict(basis.asked), dict(other.asked)
    shared = asked.keys() & also.keys()
    if basis.simulated != other.simulated:
        return "A simulated model is not compared with a real one"
    if any(asked[instance] != also[instance] for instance in shared):
        return "They ask something else, since the pack's prompts or documents were changed"
    if asked.keys() != also.keys():
        of_each = f"They have {len(also)} and {len(asked)} instances and share {len(shared)}"
        return f"{of_each}; bench compare compares two runs by what they share" if shared else of_each
    if basis.faults != other.faults:
        return "Their fault plans of this name have other faults, or draw them by another seed"
    return "Other graders graded them; bench more regrade grades all answers by the present one"


def _table(title: str, basis: Basis, arms: Sequence[ArmOfRun]) -> Table:
    """Rank the arms by what they solve. Of arms that solve equally much, the cheapest comes first."""

    def order(arm: ArmOfRun) -> tuple[float, float]:
        return -(arm.arm.solved().rate or 0.0), arm.dollars.value or arm.tokens.value or 0.0

    ordered = sorted(arms, key=order)
    count = f"{len(arms)} arms on the same {len(basis.asked)} instances" if len(basis.asked) > 1 else f"{len(arms)} arms"
    first = ordered[0]

    def place(arm: ArmOfRun) -> int:
        """Return the place of an arm in the ranking. Only arms that are known to solve more stand before it."""
        gaps = [arm.arm.solved_less(other.arm) for other in ordered]
        return 1 + sum(gap.high is not None and gap.high < 0 for gap in gaps)

    def less(arm: ArmOfRun) -> Cell:
        gap = arm.arm.solved_less(first.arm)
        return "–" if arm is first else BoundedNumber.of(gap, 1, percent=True)

    def price(arm: ArmOfRun) -> Cell:
        mean = arm.arm.mean(PRICE.tokens.name)
        return Estimate(mean) if mean.n >= LEAST_PRICED else "not measured"

    columns = (
        TableColumn[ArmOfRun]("Place", place),
        TableColumn[ArmOfRun]("Architecture", lambda arm: arm.arm.architecture),
        TableColumn[ArmOfRun]("Model", lambda arm: arm.label),
        TableColumn[ArmOfRun]("Run", lambda arm: arm.name),
        TableColumn[ArmOfRun]("Solved", lambda arm: Rate(arm.arm.solved())),
        TableColumn[ArmOfRun]("Less the first, paired", less),
        TableColumn[ArmOfRun]("Tokens for a solved task", lambda arm: Spent(arm.tokens)),
        TableColumn[ArmOfRun]("Dollars for a solved task", lambda arm: Spent(arm.dollars, 5)),
        *([] if first.plan == FAULT_FREE else [TableColumn[ArmOfRun]("Price of a failure, tokens", price)]),
    )
    return table_of("leaderboard", f"{title}: {count}{', SIMULATED' if basis.simulated else ''}", columns, ordered)
