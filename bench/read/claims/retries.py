"""The paper's retries beside ours, as the paper counts them and as whole rounds: ratios, what both ask for, and the finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench.common.wording import plural
from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, Condition
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_ROUND, Metric
from bench.read.analysis.published import Published, PublishedTable
from bench.read.analysis.statistics import Ratio
from bench.read.claims.counted import COUNTED, COUNTED_SO, IN_ALL
from bench.read.render.cells import BoundedNumber, text_of
from bench.read.report.summary import SummaryFinding
from bench.record.config import FAULT_FREE

WHOLE, STATIC, OWN = "monolithic", "static", "runtime_structured"
"""The architectures of the paper. The others' retries are compared with a retry of the first, its whole call."""
COMPARED = ((OWN, WHOLE), (OWN, STATIC), (STATIC, WHOLE))
FROM_CODE = "follows from the code"
"""The verdict on two rounds that make the same calls: they differ by what the next prompt is told, which the code adds."""
NO_DIFFERENCE = 0.005
"""Ratios that differ by less are shown as one."""


@dataclass(frozen=True, eq=False)
class PairedTable:
    """A published table, with the arms of ours that are compared with it.

    condition   the scenario, the model and the plan with the paper's failure
    undisturbed the arms without a fault, by architecture
    struck      the arms under that plan
    """

    table: PublishedTable
    condition: Condition
    undisturbed: Mapping[str, Arm]
    struck: Mapping[str, Arm]

    @property
    def other_failure(self) -> str:
        """The failure here, in words, if it differs from the paper's failure; else ""."""
        return self.table.instead.get(self.condition.plan, "")

    def ratio(self, of: str, to: str = WHOLE, measure: Metric = COUNTED) -> Ratio | None:
        """Return the retry of an architecture divided by the retry of another, as the paper counts. None if one of them has no
        retry."""
        rounds = [self.struck[name].by_pair(measure.name) for name in (of, to) if name in self.struck]
        if len(rounds) < 2:
            return None
        return statistics.ratio_of_means(*(statistics.by_unit(rounds_of) for rounds_of in statistics.in_common(*rounds)))

    def papers_ratio(self, of: str, to: str = WHOLE) -> float | None:
        """Return the paper's retry tokens of an architecture divided by those of another; None if the table lacks the first."""
        values = self.table.cells["retry_tokens"].values
        return values[of].mean / values[to].mean if of in values else None


def paired_tables(arms: Arms, published: Published) -> Iterator[PairedTable]:
    """Yield each published table with the arms of ours that are compared with it, for each size of its pack, each model and
    each plan. Plans with the table's own failure come first."""
    events = [(table, table.plan) for table in published.table]
    events += [(table, plan) for table in published.table for plan in table.instead]
    for table, plan in events:
        for condition, struck in arms.items():
            if condition.scenario.partition(":")[0] == table.scenario and condition.plan == plan:
                control = Condition(condition.scenario, condition.model, FAULT_FREE)
                yield PairedTable(table, condition, arms.get(control, {}), struck)


def rounds_ask_the_same(run: Run, first: Arm, second: Arm) -> bool:
    """Return whether the rounds of two arms ask for the same subtasks in the same order, in every pair that has both."""
    calls = run.calls[run.calls["in_first_round"]]
    asked: dict[str, list[str]] = {}
    for trial, subtask in zip(calls["trial"].tolist(), calls["subtask"].tolist(), strict=True):
        asked.setdefault(trial, []).append(subtask)
    ours, theirs = (
        {pair: asked.get(trial) for trial, pair, _ in arm.values(FIRST_ROUND.tokens.name)} for arm in (first, second)
    )
    both = ours.keys() & theirs.keys()
    return bool(both) and all(ours[pair] == theirs[pair] for pair in both)


VerdictOnRetries = Callable[[Condition, str, str, Metric], str]
"""(condition, architecture, another, measure) -> the verdict on the direction of their retries; "" if there is none."""


def retry_findings(run: Run, arms: Arms, published: Published, verdicts: VerdictOnRetries) -> Iterator[SummaryFinding]:
    """Yield for each of the paper's tables what a retry took at its event, as the paper counts and over the whole round.
    Several models are not told of."""
    for cell in paired_tables(arms, published) if len(run.names("model")) == 1 else ():
        sentences = [text for pair in COMPARED if not cell.other_failure and (text := _sentence(run, cell, pair, verdicts))]
        if sentences:
            first = f"On {cell.condition.scenario}, {sentences[0]}"
            others = (f"{text[0].upper()}{text[1:]}" for text in sentences[1:])
            title = _title(run, cell) if _value(cell.ratio(OWN)) else ""
            yield SummaryFinding(" ".join([first, *others]), f"table{cell.table.number}", first, title)


def _title(run: Run, cell: PairedTable) -> str:
    counted, whole = (_value(cell.ratio(OWN, measure=measure)) for measure in (COUNTED, FIRST_ROUND.tokens))
    took = f"a retry of {OWN} took {counted:.0%} of {WHOLE}'s tokens {COUNTED_SO} ({cell.papers_ratio(OWN):.0%} there)"
    in_all = f" and {whole:.0%} in all" if abs(whole - counted) >= NO_DIFFERENCE else ""
    marked = " (SIMULATED)" if run.is_simulated(cell.condition.model) else ""
    return f"On {cell.condition.scenario} {took}{in_all}{marked}"


def _sentence(run: Run, cell: PairedTable, pair: tuple[str, str], verdicts: VerdictOnRetries) -> str:
    """Return a sentence on two retries, "" if they are not compared. The whole round is left out where it is what the paper
    counts."""
    (of, to), at, whole = pair, cell.condition, FIRST_ROUND.tokens
    counted, in_all = cell.ratio(of, to), cell.ratio(of, to, whole)
    if counted is None or in_all is None or not counted.pairs:
        return ""
    papers = f"the paper {cell.papers_ratio(of, to):.1%}"
    evidence = "; ".join(filter(None, [plural(counted.pairs, "pair"), papers, verdicts(at, of, to, COUNTED)]))
    text = f"a retry of {of} took {_share(counted)} of {to}'s tokens {COUNTED_SO} ({evidence})"
    if abs(_value(in_all) - _value(counted)) < NO_DIFFERENCE:
        return f"{text}."
    same = rounds_ask_the_same(run, cell.struck[of], cell.struck[to])
    why = f"the same calls, told the reason: {FROM_CODE}" if same else verdicts(at, of, to, whole)
    return f"{text} and {_share(in_all)} over {IN_ALL}{f' ({why})' if why else ''}."


def _value(ratio: Ratio | None) -> float:
    return (ratio and ratio.ratio) or 0.0


def _share(ratio: Ratio) -> str:
    return text_of(BoundedNumber.of(ratio, 1, percent=True))
