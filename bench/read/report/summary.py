"""The first screen of a report: what was run, what the numbers show in a few sentences, and what they do not show.

Each sentence is written from the run's frames and names its table.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.common.wording import plural
from bench.read.analysis.arms import Arms, Condition, instances_by_scenario
from bench.read.analysis.faults import IMPACTS
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_PASS, FIRST_ROUND, MIN_PRICED_TRIALS, PRICE, SCORE, Metric
from bench.read.analysis.recovery_rates import RecoveryRate, recovery_rates
from bench.read.analysis.statistics import Mean, is_narrow
from bench.read.compare.models import ModelPair, model_pairs
from bench.read.render.cells import NARROW, BoundedNumber
from bench.read.render.labels import MOST_NAMED, each_arm, join_names, model_label, plan_phrase
from bench.read.report.headline import (
    ComparedArms,
    compared_arms,
    count_harmed_trials,
    has_only_instruments,
    headline_of,
    solved_texts,
)
from bench.record.config import FAULT_FREE

WIDTH, MOST_LINES = 100, 8
"""The most characters in a line, and the most lines, of a summary in a terminal. `bench run` prints three lines before it and
`bench report` one after."""
MOST_NOTED = 3
"""The most lines on what is left out of several runs."""
MOST_FINDINGS, MOST_CONDITIONS = 5, 2
FAULTS, SEVERAL = 1, 2
"""A sentence names the fault plan if the run has at least FAULTS; dollars are shown for at least SEVERAL models."""


@dataclass(frozen=True)
class SummaryFinding:
    """What a table shows, in a sentence. `table` is the name of the table. `first` is the first of several sentences, or "".
    With a `title` it leads the findings, and gives the report its title."""

    text: str
    table: str
    first: str = ""
    title: str = ""


@dataclass(frozen=True)
class Summary:
    """The first screen. `headline` is the first finding in short, as a title. `ran` says what was run, `findings` what it shows
    (five at most), `limits` what it does not show. `leads` comes before the findings in a terminal: for several models, what
    each solved and its cost."""

    headline: str
    ran: str
    findings: tuple[SummaryFinding, ...]
    limits: tuple[str, ...]
    leads: str = ""

    def lines(self, notes: Sequence[str] = ()) -> tuple[str, ...]:
        """Return what a terminal shows, in lines of at most WIDTH characters: the findings that fit into MOST_LINES, and one
        limit.

        Args:
            notes: What was left out of several runs, or differs between them. If they take too many lines they are only
                counted.
        """
        noted = [line for note in notes for line in _wrap(note)]
        if len(noted) > MOST_NOTED:
            noted = [f"{len(notes)} notes say what is left out of these runs, or differs: see the page, or `bench report -v`."]
        lines = _wrap(self.ran)
        last = _wrap(f"Not shown: {self.limits[0][0].lower()}{self.limits[0][1:]}")
        for texts in ((self.leads,), *((finding.text, finding.first) for finding in self.findings)):
            for text in filter(None, texts):
                further = _wrap(f"- {text}", "  ")
                if len(lines) + len(further) + len(last) <= MOST_LINES:
                    lines += further
                    break
        return (*noted, *lines, *last)


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def summary_of(
    run: Run, arms: Arms, verdicts: Sequence[SummaryFinding] = (), models: Sequence[ModelPair] | None = None
) -> Summary:
    """Return the first screen of a run's report.

    Args:
        run: The run.
        arms: Its arms.
        verdicts: Sentences of the sources of claims that judged a claim. One with a title comes first.
        models: Its models, judged beside the first; None if they are still to be judged.

    Damage in a world comes first. If there are too many findings, the first passes and the faults' impacts are left to their
    tables.
    """
    several = len(run.names("model")) >= SEVERAL  # a table has what each solved and took
    rounds = right = passes = None
    if not several:
        rounds = _least_spent(run, arms, "the first repair of a failure", FIRST_ROUND.tokens, faults=True)
        right = _right_answers(run, arms)
        passes = _least_spent(run, arms, "a pass without a failure", FIRST_PASS.tokens, faults=False)
    each = (_damage(run, arms), rounds, right, _recovery(run, arms), _impacts(run))
    leading = [finding for finding in verdicts if finding.title]
    findings = [*leading, *[finding for finding in each if finding][: MOST_FINDINGS - len(verdicts)]]
    findings += [finding for finding in verdicts if finding not in leading]
    headline = leading[0].title if leading else headline_of(run, arms, model_pairs(run) if models is None else models)
    return Summary(
        headline=headline,
        ran=_ran(run),
        findings=tuple([*findings, *([passes] if passes else [])][:MOST_FINDINGS]),
        limits=tuple(_limits(run, arms)),
        leads=f"{headline}." if several else "",
    )


def _ran(run: Run) -> str:
    trials = run.trials
    models = join_names([model_label(run, model) for model in run.names("model")])
    architectures, scenarios = (join_names(run.names(column)) for column in ("architecture", "scenario"))
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    faults = f"under {plural(len(plans), 'fault plan')} ({join_names(plans)})" if plans else "without faults"
    beside = " and without faults" if plans and FAULT_FREE in run.names("plan") else ""
    return f"{len(trials):,} trials: {architectures} on {scenarios}, answered by {models}, {faults}{beside}."


# Findings


def _least_spent(run: Run, arms: Arms, what: str, tokens: Metric, faults: bool) -> SummaryFinding | None:
    """Return what took the fewest tokens in each condition with faults, or in each without."""
    groups = [group for group in compared_arms(run, arms) if (group.condition.plan != FAULT_FREE) is faults]
    return _finding(_cheapest(run, groups, what, tokens), tokens.name.removesuffix("_tokens"))


def _cheapest(run: Run, groups: Iterable[ComparedArms], what: str, tokens: Metric) -> Iterator[str]:
    """Yield sentences that say which arm of a group took the fewest tokens, and its share of the most that any took. Groups
    with the same arms at both ends share a sentence, which says them all or the first. The others come last."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for group in groups:
        means = {name: arm.mean(tokens.name) for name, arm in group.arms.items()}
        known = sorted((mean.mean, name) for name, mean in means.items() if mean.mean is not None)
        if not known:
            continue
        (_, first), (_, last) = known[0], known[-1]
        ratio = group.arms[first].ratio_to(group.arms[last], tokens.name)
        share, n = f" {BoundedNumber.of(ratio, 0, percent=True).text()}", plural(ratio.pairs, "pair")
        of = f" of the tokens with {last}{f', the dearest of {len(known)},' if len(known) > SEVERAL else ''}"
        if first == last:
            begins, of, n = f"{what} took", f" tokens with {first}", f"mean of {plural(means[first].n, 'trial')}"
            share = f" {_number(means[first])}"
        elif ratio.ratio is None:
            begins, share, of = f"{what} took the fewest tokens with {first} and the most with {last}", "", ""
        elif ratio.high is not None and ratio.high < 1:
            begins = f"{what} took the fewest tokens with {first}:"
        else:
            begins = f"{what} shows no clear difference: with {first} it took"
        alike.setdefault((begins, of), []).append((share, f" on {_where(run, group.condition, group.by)} ({n})"))
    left_out = list[str]()
    for (begins, of), ((share, on), *others) in alike.items():
        parts = [f"{share}{of}{on}", *(f"{share}{on}".strip() for share, on in others)]
        shown = len(parts) if len(parts) <= MOST_CONDITIONS else 1
        yield f"{begins}{join_names(parts[:shown])}"
        left_out += parts[shown:]
    yield from left_out


def _where(run: Run, condition: Condition, by: str, least: int = SEVERAL) -> str:
    """Name the scenario, `by` whom, and the fault plan if the run has at least `least`."""
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    plan = f" under {condition.plan}" if condition.plan in plans and len(plans) >= least else ""
    return f"{condition.scenario}{by}{plan}"


def _with_model(run: Run, model: str) -> str:
    return f" with {model_label(run, model)}" if len(run.names("model")) > 1 else ""


def _ranking(texts: Sequence[str]) -> str:
    if len(texts) <= MOST_NAMED:
        return join_names(texts)
    between = len(texts) - MOST_NAMED + 1
    return join_names([*texts[: MOST_NAMED - 2], f"{between} others in between", texts[-1]])


def _finding(each: Iterable[str], table: str) -> SummaryFinding | None:
    """Join the first lines as sentences, with the number of further lines. None if there is no line."""
    if not (lines := list(each)):
        return None
    rest = len(lines) - MOST_CONDITIONS
    more = [f"{rest} more {'stand' if rest > 1 else 'stands'} in the table"] if rest > 0 else []
    sentences = [f"{text[0].upper()}{text[1:]}." for text in [*lines[:MOST_CONDITIONS], *more]]
    return SummaryFinding(_with_meaning(" ".join(sentences)), table, _with_meaning(sentences[0]))


def _with_meaning(text: str) -> str:
    """Say behind sentences what the sign of an interval means."""
    return f"{text} {NARROW}: too narrow." if NARROW in text else text


def _number(mean: Mean) -> str:
    interval = f" [{mean.low:,.0f}, {mean.high:,.0f}]" if mean.low is not None and mean.high is not None else ""
    return f"{mean.mean:,.0f}{interval}{NARROW if interval and is_narrow(mean) else ''}"


def _impacts(run: Run) -> SummaryFinding | None:
    delivered = run.faults[run.faults["delivered"] & run.faults["finish"].ne("error")]
    if delivered.empty:
        return None
    effective, masked, untold = (int(delivered["impact"].eq(impact).sum()) for impact in IMPACTS)
    injected = f"{plural(len(delivered), 'failure')} {'was' if len(delivered) == 1 else 'were'} injected"
    if effective == len(delivered):
        text = f"{injected}, and none hit an answer that was bad anyway."
        return SummaryFinding(text, "receipts") if delivered["point"].eq("output").any() else None
    left = f" Of {untold:,} it cannot be told." if untold else ""
    text = f"{injected}; {masked:,} hit answers that were bad anyway, so {effective:,} tell what a failure costs.{left}"
    return SummaryFinding(text, "receipts")


def _recovery(run: Run, arms: Arms) -> SummaryFinding | None:
    """Return a sentence for each condition with faults: how many of the same tasks each architecture solves, the best first."""
    by_condition: dict[Condition, list[RecoveryRate]] = {}
    for rate in recovery_rates(run, arms):
        by_condition.setdefault(rate.arm.condition, []).append(rate)
    lines = [
        f"on {_where(run, condition, _with_model(run, condition.model), FAULTS)}, {_again(rates, n)}"
        for condition, rates in by_condition.items()
        for n in [rates[0].recovered.n]
        if n
    ]
    return _finding(lines, "recovery")


def _again(rates: Sequence[RecoveryRate], n: int) -> str:
    (first, k), *others = sorted(((rate.arm.architecture, rate.recovered.k) for rate in rates), key=lambda pair: -pair[1])
    if not others:
        return f"{first} solved {k} of the {plural(n, 'trial')} that it solves without faults"
    solved = _ranking([f"{first} solved {k}", *(f"{name} {k}" for name, k in others)])
    return f"of {plural(n, 'trial')} that every architecture solves without faults, {solved}"


def _right_answers(run: Run, arms: Arms) -> SummaryFinding | None:
    """Return what each architecture solved without faults. If no trial was without faults, return this for trials under
    faults."""
    graded = run.trials[run.trials["correct"].notna()]
    if graded.empty or has_only_instruments(arms):
        return None
    if not graded["outcome"].eq("solved").any():
        return SummaryFinding(f"No trial was solved, 0 of {len(graded):,}, so nothing is said about right answers.", "outcomes")
    groups = compared_arms(run, arms)
    undisturbed = [group for group in groups if group.condition.plan == FAULT_FREE]
    lines = []
    for group in undisturbed or groups:
        shares = sorted(((arm.solved(), name) for name, arm in group.arms.items()), key=lambda pair: -(pair[0].rate or 0))
        counts = [(name, share) for share, name in shares if share.n]
        if counts:
            where = f"on {group.condition.scenario}{group.by} {plan_phrase(group.condition.plan)}"
            lines.append(f"{where}, {_ranking(solved_texts(counts))}")
    return _finding(lines, "outcomes")


def _damage(run: Run, arms: Arms) -> SummaryFinding | None:
    """Return in how many trials each architecture did damage in a world, the least first."""
    lines = []
    for group in compared_arms(run, arms):
        harmed = [(count, of, name) for name, arm in group.arms.items() for count, of in [count_harmed_trials(arm)] if of]
        if harmed and group.condition.plan != FAULT_FREE:
            shares = [
                f"{count} of {of} trials of {name}" for count, of, name in sorted(harmed, key=lambda harm: harm[0] / harm[1])
            ]
            lines.append(f"on {_where(run, group.condition, group.by, FAULTS)}, damage was done in {_ranking(shares)}")
    return _finding(lines, "world_damage")


# Limits


def _limits(run: Run, arms: Arms) -> Iterator[str]:
    if has_only_instruments(arms):
        yield "What the answers lead to: they were only asked for, and nothing was done with them."
    elif not run.trials["outcome"].eq("solved").any():
        yield "Whether a failure is recovered to a right answer: no trial was solved."
    elif {FAULT_FREE} < set(run.names("plan")) and not any(recovery_rates(run, arms)):
        yield "Whether a failure is recovered to a right answer: no trial without faults was solved."
    yield _of_which_tasks(run)
    yield "Other models, prompts and settings than those that were run."
    yield from _below_floor(run, arms)
    if unpriced := list(dict.fromkeys(_without_price(run, arms))):
        few = f"fewer than {MIN_PRICED_TRIALS} trials had an effective fault that was noticed"
        yield f"The whole price of a failure for {join_names(unpriced)}: {few}."


def _below_floor(run: Run, arms: Arms) -> Iterator[str]:
    """Name each pack on which keyword rules score higher than every architecture."""
    for scenario in run.names("scenario"):
        scores = [arm.mean(SCORE.name).mean or 0.0 for arm in each_arm(arms) if arm.condition.scenario == scenario]
        baseline = run.pack(scenario).baseline
        if baseline and scores and baseline.score > max(scores):
            floor = f"keyword rules without any model score {baseline.score:.3f}, the best arm {max(scores):.3f}"
            yield f"That a model is needed for {scenario}: {floor}."


def _of_which_tasks(run: Run) -> str:
    instances = instances_by_scenario(run)
    sole, several = ([name for name, names_of in instances.items() if (len(names_of) > 1) is many] for many in (False, True))
    if not sole:
        return "Tasks of other kinds: intervals cluster by instance and hold for tasks like these, with these models."
    if not several:
        return "Other tasks: each pack has one task, so intervals hold for repetitions of that task alone, with these models."
    return (
        f"Other tasks: with one task ({join_names(sole)}), intervals hold for repetitions of that task alone; with several "
        f"({join_names(several)}), they cluster by instance and hold for tasks like these; with these models."
    )


def _without_price(run: Run, arms: Arms) -> Iterator[str]:
    several = len(set(run.names("plan")) - {FAULT_FREE}) > 1
    for arm in each_arm(arms):
        if arm.usable["faults_delivered"].any() and arm.mean(PRICE.tokens.name).n < MIN_PRICED_TRIALS:
            plan = f" {plan_phrase(arm.condition.plan)}" if several else ""
            yield f"{arm.architecture} on {arm.condition.scenario}{plan}{_with_model(run, arm.condition.model)}"
