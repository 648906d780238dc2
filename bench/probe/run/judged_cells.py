"""The verdicts of a probe until now, and what follows from them: which cells need another run, and which did damage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from operator import itemgetter

from bench.probe.read.run import INCONCLUSIVE
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import CellJudged, GatewayCall

MAX_RUNS_PER_CELL = 5
"""How often a damaged cell is run if its damage does not come again: then it is a rate."""


class JudgedCells:
    """The verdicts on the runs of each cell, in order. Runs with mended parts count as cells of their own."""

    def __init__(self) -> None:
        self._verdicts = dict[str, list[CellJudged]]()
        self._damaged_calls = dict[tuple[str, int], Sequence[GatewayCall]]()
        """(plan, repetition) -> the calls of a damaged run."""

    def add(self, run: CellRun) -> None:
        """Add the verdict of a run. The rows of its findings are not kept, since there can be many."""
        assert run.judgement
        findings = tuple(replace(finding, rows=()) for finding in run.judgement.findings)
        verdicts = self._verdicts.setdefault(run.plan, [])
        if run.judgement.is_damage and not run.judgement.mended:
            self._damaged_calls[run.plan, len(verdicts)] = of_kind(run.events, GatewayCall)
        verdicts.append(replace(run.judgement, findings=findings))

    def void(self, cells: Iterable[tuple[str, int]]) -> None:
        """Remove the verdicts of these runs, since the control after them differed from the clean runs."""
        for plan, repetition in cells:
            verdicts = self._verdicts.get(plan, [])
            self._damaged_calls.pop((plan, repetition), None)
            if repetition < len(verdicts):
                why = "the control after it was not the same"
                verdicts[repetition] = replace(verdicts[repetition], verdict="no_verdict", why=why)

    def damaged_calls(self, plan: str) -> Sequence[GatewayCall]:
        """Return the calls of the cell's first damaged run that has kept its verdict."""
        return next(calls for (of_plan, _), calls in sorted(self._damaged_calls.items(), key=itemgetter(0)) if of_plan == plan)

    def of(self, plan: str) -> Sequence[CellJudged]:
        """Return the verdicts on the runs of a cell."""
        return self._verdicts.get(plan, ())

    def is_settled(self, plan: str) -> bool:
        """Return whether a cell needs no further run: it did no damage, did its damage twice, or ran as often as a cell may."""
        verdicts = self.of(plan)
        conclusive = [judged for judged in verdicts if judged.verdict not in INCONCLUSIVE]
        is_confirmed = not self.is_damaged(plan) or any(same_verdict(*pair) for pair in pairwise(conclusive))
        return bool(verdicts) and (is_confirmed or len(verdicts) >= MAX_RUNS_PER_CELL)

    def is_damaged(self, plan: str) -> bool:
        """Return whether a run of a cell did damage."""
        return any(judged.is_damage for judged in self.of(plan))

    @property
    def any_damage(self) -> bool:
        """Whether any run did damage."""
        return any(judged.is_damage for judged in chain.from_iterable(self._verdicts.values()))


def same_verdict(first: CellJudged, second: CellJudged) -> bool:
    """Return whether two runs of a cell have the same verdict and the same damaged effects, however often these occur."""
    first_effects, second_effects = ({(f.kind, f.effect) for f in judged.findings} for judged in (first, second))
    return first.verdict == second.verdict and first_effects == second_effects
