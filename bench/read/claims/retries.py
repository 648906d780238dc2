"""The tokens of a retry in the paper and in our run, as ratios of two architectures: as the paper counts them and over whole
rounds, and the summary's sentences on them."""

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
from bench.read.claims.counted import AS_PAPER_COUNTS, COUNTED, WHOLE_ROUND
from bench.read.render.cells import BoundedNumber, text_of
from bench.read.render.finding import SummaryFinding
from bench.record.config import FAULT_FREE

MONOLITHIC, STATIC, RUNTIME_STRUCTURED = "monolithic", "static", "runtime_structured"
"""The architectures of the paper. A retry of monolithic is its whole call."""
COMPARED = ((RUNTIME_STRUCTURED, MONOLITHIC), (RUNTIME_STRUCTURED, STATIC), (STATIC, MONOLITHIC))
FOLLOWS_FROM_CODE = "follows from the code"
"""The verdict on two rounds that make the same calls: they differ only by the reason of the rejection, which the code adds to
the next prompt."""
MIN_SHOWN_DIFFERENCE = 0.005
"""If the two ratios of a retry differ by less, only one is shown."""


@dataclass(frozen=True, eq=False)
class PairedTable:
    """A published table, and our arms that are compared with it.

    condition    the scenario, the model and the plan with the paper's failure
    fault_free   our arms without a fault, by architecture
    struck       our arms under that plan, by architecture
    """

    table: PublishedTable
    condition: Condition
    fault_free: Mapping[str, Arm]
    struck: Mapping[str, Arm]

    @property
    def other_failure(self) -> str:
        """The failure of our plan in words if it is not the paper's failure; else ""."""
        return self.table.instead.get(self.condition.plan, "")

    def ratio(self, of: str, to: str = MONOLITHIC, measure: Metric = COUNTED) -> Ratio | None:
        """Return the mean of a measure of the retries of one architecture divided by that of another. None if one of them has
        no retry."""
        rounds = [self.struck[name].by_pair(measure.name) for name in (of, to) if name in self.struck]
        if len(rounds) < 2:
            return None
        return statistics.ratio_of_means(*(statistics.by_unit(rounds_of) for rounds_of in statistics.in_common(*rounds)))

    def papers_ratio(self, of: str, to: str = MONOLITHIC) -> float | None:
        """Return the paper's retry tokens of one architecture divided by those of another; None if the table lacks the
        first."""
        values = self.table.cells["retry_tokens"].values
        return values[of].mean / values[to].mean if of in values else None


def paired_tables(arms: Arms, published: Published) -> Iterator[PairedTable]:
    """Yield each published table with our arms that are compared with it, for each size of its pack, each model and each plan.
    Plans with the table's own failure come first."""
    plans = [(table, table.plan) for table in published.table]
    plans += [(table, plan) for table in published.table for plan in table.instead]
    for table, plan in plans:
        for condition, struck in arms.items():
            if condition.scenario.partition(":")[0] == table.scenario and condition.plan == plan:
                control = Condition(condition.scenario, condition.model, FAULT_FREE)
                yield PairedTable(table, condition, arms.get(control, {}), struck)


def rounds_ask_the_same(run: Run, first: Arm, second: Arm) -> bool:
    """Whether the first rounds of two arms ask for the same subtasks in the same order, in every pair of trials that has
    both."""
    calls = run.calls[run.calls["in_first_round"]]
    subtasks: dict[str, list[str]] = {}
    for trial, subtask in zip(calls["trial"].tolist(), calls["subtask"].tolist(), strict=True):
        subtasks.setdefault(trial, []).append(subtask)
    ours = {pair: subtasks.get(trial) for trial, pair, _ in first.values(FIRST_ROUND.tokens.name)}
    theirs = {pair: subtasks.get(trial) for trial, pair, _ in second.values(FIRST_ROUND.tokens.name)}
    both = ours.keys() & theirs.keys()
    return bool(both) and all(ours[pair] == theirs[pair] for pair in both)


VerdictOnRetries = Callable[[Condition, str, str, Metric], str]
"""(condition, architecture, another, measure) -> the verdict on the direction of their retries; "" if there is none."""


def retry_findings(run: Run, arms: Arms, published: Published, verdicts: VerdictOnRetries) -> Iterator[SummaryFinding]:
    """Yield a finding for each of the paper's tables: what a retry took, as the paper counts and over the whole round. There is
    none if the run has several models."""
    if len(run.names("model")) > 1:
        return
    for cell in (cell for cell in paired_tables(arms, published) if not cell.other_failure):
        sentences = [text for pair in COMPARED if (text := _sentence(run, cell, pair, verdicts))]
        if sentences:
            first = f"On {cell.condition.scenario}, {sentences[0]}"
            others = (f"{text[0].upper()}{text[1:]}" for text in sentences[1:])
            title = _title(run, cell) if _value(cell.ratio(RUNTIME_STRUCTURED)) else ""
            yield SummaryFinding(" ".join([first, *others]), f"table{cell.table.number}", first, title)


def _title(run: Run, cell: PairedTable) -> str:
    """Return the report's title: the share of monolithic's retry tokens that a retry of runtime_structured took."""
    counted, whole = (_value(cell.ratio(RUNTIME_STRUCTURED, measure=measure)) for measure in (COUNTED, FIRST_ROUND.tokens))
    took = f"a retry of {RUNTIME_STRUCTURED} took {counted:.0%} of {MONOLITHIC}'s tokens {AS_PAPER_COUNTS}"
    paper_text = f" ({cell.papers_ratio(RUNTIME_STRUCTURED):.0%} there)"
    whole_text = f" and {whole:.0%} in all" if abs(whole - counted) >= MIN_SHOWN_DIFFERENCE else ""
    mark = " (SIMULATED)" if run.is_simulated(cell.condition.model) else ""
    return f"On {cell.condition.scenario} {took}{paper_text}{whole_text}{mark}"


def _sentence(run: Run, cell: PairedTable, pair: tuple[str, str], verdicts: VerdictOnRetries) -> str:
    """Return a sentence on the retries of two architectures; "" if they cannot be compared. The whole round is left out if its
    ratio is the same."""
    (first, second), condition, whole_round = pair, cell.condition, FIRST_ROUND.tokens
    counted, whole = cell.ratio(first, second), cell.ratio(first, second, whole_round)
    if counted is None or whole is None or not counted.pairs:
        return ""
    paper = f"the paper {cell.papers_ratio(first, second):.1%}"
    evidence = "; ".join(filter(None, [plural(counted.pairs, "pair"), paper, verdicts(condition, first, second, COUNTED)]))
    text = f"a retry of {first} took {_share(counted)} of {second}'s tokens {AS_PAPER_COUNTS} ({evidence})"
    if abs(_value(whole) - _value(counted)) < MIN_SHOWN_DIFFERENCE:
        return f"{text}."
    if rounds_ask_the_same(run, cell.struck[first], cell.struck[second]):
        reason = f"the same calls, told the reason: {FOLLOWS_FROM_CODE}"
    else:
        reason = verdicts(condition, first, second, whole_round)
    return f"{text} and {_share(whole)} over {WHOLE_ROUND}{f' ({reason})' if reason else ''}."


def _value(ratio: Ratio | None) -> float:
    """Return a ratio's value; 0 if it is unknown."""
    return (ratio and ratio.ratio) or 0.0


def _share(ratio: Ratio) -> str:
    """Return a ratio as a percentage with its interval."""
    return text_of(BoundedNumber.of(ratio, 1, percent=True))
