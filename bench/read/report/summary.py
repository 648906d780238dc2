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
from bench.read.render.finding import SummaryFinding
from bench.read.render.labels import MAX_LISTED_NAMES, each_arm, join_names, model_label, plan_phrase
from bench.read.report.headline import (
    ComparedArms,
    compared_arms,
    count_harmed_trials,
    damage_without_faults,
    has_only_instruments,
    headline_of,
    solved_texts,
)
from bench.record.config import FAULT_FREE

MAX_LINE_CHARS, MAX_LINES = 100, 8
"""Bounds of a summary in a terminal. `bench run` prints three lines before the summary, and `bench report` one after it."""
MAX_NOTE_LINES = 3
"""The most lines of notes on what is left out of several runs."""
MAX_FINDINGS, MAX_SENTENCES = 5, 2
"""The most findings of a summary, and the most sentences of a finding."""


@dataclass(frozen=True)
class Summary:
    """The first screen of a report.

    headline   the first finding in short, as a title
    ran        what was run
    findings   what the numbers show, MAX_FINDINGS at most
    limits     what the numbers do not show
    leads      a sentence before the findings in a terminal: for several models, what each solved and its cost; else ""
    """

    headline: str
    ran: str
    findings: tuple[SummaryFinding, ...]
    limits: tuple[str, ...]
    leads: str = ""

    def lines(self, notes: Sequence[str] = ()) -> tuple[str, ...]:
        """Return what a terminal shows: the notes, what was run, the findings that fit into MAX_LINES lines, and one limit.

        Args:
            notes: What was left out of several runs, or differs between them. If they take too many lines they are only
                counted.
        """
        header = [line for note in notes for line in _wrap(note)]
        if len(header) > MAX_NOTE_LINES:
            header = [f"{len(notes)} notes say what is left out of these runs, or differs: see the page, or `bench report -v`."]
        lines = _wrap(self.ran)
        limit = _wrap(f"Not shown: {self.limits[0][0].lower()}{self.limits[0][1:]}")
        # Of each finding the whole text is shown if it fits, else the first sentence if that fits.
        for long_and_short in ((self.leads,), *((finding.text, finding.first) for finding in self.findings)):
            for text in filter(None, long_and_short):
                bullet = _wrap(f"- {text}", "  ")
                if len(lines) + len(bullet) + len(limit) <= MAX_LINES:
                    lines += bullet
                    break
        return (*header, *lines, *limit)


def _wrap(text: str, indent: str = "") -> list[str]:
    """Return a text in lines of at most MAX_LINE_CHARS. All but the first line are indented."""
    return textwrap.wrap(text, MAX_LINE_CHARS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def summary_of(
    run: Run, arms: Arms, verdicts: Sequence[SummaryFinding] = (), models: Sequence[ModelPair] | None = None
) -> Summary:
    """Return the first screen of a run's report.

    Args:
        run: The run.
        arms: Its arms.
        verdicts: Findings on published claims. A finding with a title comes first.
        models: The run's models, compared with the first; None if they are still to be compared.

    If there are too many findings, the first passes and the faults' impacts are left to their tables.
    """
    has_models_table = len(run.names("model")) > 1  # that table says what each model solved and took
    rounds = right = passes = None
    if not has_models_table:
        rounds = _least_spent(run, arms, "the first repair of a failure", FIRST_ROUND.tokens, with_faults=True)
        right = _right_answers(run, arms)
        passes = _least_spent(run, arms, "a pass without a failure", FIRST_PASS.tokens, with_faults=False)
    measured = filter(None, (_damage(run, arms), rounds, right, _recovery(run, arms), _impacts(run)))
    leading = [finding for finding in verdicts if finding.title]
    findings = [*leading, *list(measured)[: MAX_FINDINGS - len(verdicts)]]
    findings += [finding for finding in verdicts if finding not in leading]
    headline = leading[0].title if leading else headline_of(run, arms, model_pairs(run) if models is None else models)
    return Summary(
        headline=headline,
        ran=_run_sentence(run),
        findings=tuple([*findings, *([passes] if passes else [])][:MAX_FINDINGS]),
        limits=tuple(_limits(run, arms)),
        leads=f"{headline}." if has_models_table else "",
    )


def _run_sentence(run: Run) -> str:
    """Return a sentence on what was run."""
    trials = run.trials
    models = join_names([model_label(run, model) for model in run.names("model")])
    architectures, scenarios = (join_names(run.names(column)) for column in ("architecture", "scenario"))
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    faults = f"under {plural(len(plans), 'fault plan')} ({join_names(plans)})" if plans else "without faults"
    also_without = " and without faults" if plans and FAULT_FREE in run.names("plan") else ""
    return f"{len(trials):,} trials: {architectures} on {scenarios}, answered by {models}, {faults}{also_without}."


# Findings


def _least_spent(run: Run, arms: Arms, spent_on: str, tokens: Metric, with_faults: bool) -> SummaryFinding | None:
    """Return what took the fewest tokens in each condition with faults, or in each condition without. `spent_on` says what the
    tokens were spent on."""
    groups = [group for group in compared_arms(run, arms) if (group.condition.plan != FAULT_FREE) is with_faults]
    return _finding(_cheapest(run, groups, spent_on, tokens), tokens.name.removesuffix("_tokens"))


def _cheapest(run: Run, groups: Iterable[ComparedArms], spent_on: str, tokens: Metric) -> Iterator[str]:
    """Yield sentences that say which arm of a group took the fewest tokens, and its share of the most that any arm took.
    Groups with the same cheapest and dearest arm share a sentence: it has all of these groups if they are MAX_SENTENCES at
    most, else only the first. The other groups come last."""
    sentences: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for group in groups:
        means = {name: arm.mean(tokens.name) for name, arm in group.arms.items()}
        ranked = sorted((mean.mean, name) for name, mean in means.items() if mean.mean is not None)
        if not ranked:
            continue
        (_, first), (_, last) = ranked[0], ranked[-1]
        ratio = group.arms[first].ratio_to(group.arms[last], tokens.name)
        share, n = f" {BoundedNumber.of(ratio, 0, percent=True).text()}", plural(ratio.pairs, "pair")
        relation = f" of the tokens with {last}{f', the dearest of {len(ranked)},' if len(ranked) > 2 else ''}"
        if first == last:  # a single arm has a value
            start, relation, n = f"{spent_on} took", f" tokens with {first}", f"mean of {plural(means[first].n, 'trial')}"
            share = f" {_mean_text(means[first])}"
        elif ratio.ratio is None:  # no pair has both arms' values
            start, share, relation = f"{spent_on} took the fewest tokens with {first} and the most with {last}", "", ""
        elif ratio.high is not None and ratio.high < 1:
            start = f"{spent_on} took the fewest tokens with {first}:"
        else:
            start = f"{spent_on} shows no clear difference: with {first} it took"
        sentences.setdefault((start, relation), []).append((share, f" on {_where(run, group.condition, group.by)} ({n})"))
    in_no_sentence = list[str]()
    for (start, relation), ((share, where), *others) in sentences.items():
        parts = [f"{share}{relation}{where}", *(f"{share}{where}".strip() for share, where in others)]
        count = len(parts) if len(parts) <= MAX_SENTENCES else 1
        yield f"{start}{join_names(parts[:count])}"
        in_no_sentence += parts[count:]
    yield from in_no_sentence


def _where(run: Run, condition: Condition, by: str, always_plan: bool = False) -> str:
    """Return a condition in words: the scenario, `by` (" with static" or ""), and the fault plan if the run has several or if
    `always_plan`."""
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    plan = f" under {condition.plan}" if condition.plan in plans and (always_plan or len(plans) > 1) else ""
    return f"{condition.scenario}{by}{plan}"


def _with_model(run: Run, model: str) -> str:
    """Return the model as a phrase; "" if the run has one model."""
    return f" with {model_label(run, model)}" if len(run.names("model")) > 1 else ""


def _ranking(texts: Sequence[str]) -> str:
    """Join texts in the order of a ranking. Of a long ranking, the texts before the last are only counted."""
    if len(texts) <= MAX_LISTED_NAMES:
        return join_names(texts)
    between = len(texts) - MAX_LISTED_NAMES + 1
    return join_names([*texts[: MAX_LISTED_NAMES - 2], f"{between} others in between", texts[-1]])


def _finding(texts: Iterable[str], table: str) -> SummaryFinding | None:
    """Return a finding of the first MAX_SENTENCES lines, as sentences, and the number of further lines. None if there is no
    line."""
    lines = list(texts)
    if not lines:
        return None
    further = len(lines) - MAX_SENTENCES
    more = [f"{further} more {'stand' if further > 1 else 'stands'} in the table"] if further > 0 else []
    sentences = [f"{text[0].upper()}{text[1:]}." for text in [*lines[:MAX_SENTENCES], *more]]
    return SummaryFinding(_with_legend(" ".join(sentences)), table, _with_legend(sentences[0]))


def _with_legend(text: str) -> str:
    """Return the text, with an explanation of the sign for narrow intervals if the text has this sign."""
    return f"{text} {NARROW}: too narrow." if NARROW in text else text


def _mean_text(mean: Mean) -> str:
    """Return a mean with its interval as text."""
    interval = f" [{mean.low:,.0f}, {mean.high:,.0f}]" if mean.low is not None and mean.high is not None else ""
    return f"{mean.mean:,.0f}{interval}{NARROW if interval and is_narrow(mean) else ''}"


def _impacts(run: Run) -> SummaryFinding | None:
    """Return how many of the delivered faults hit an answer that was good without them. None if no fault was delivered, or if
    all faults were effective and none struck an output."""
    delivered = run.faults[run.faults["delivered"] & run.faults["finish"].ne("error")]
    if delivered.empty:
        return None
    effective, masked, undetermined = (int(delivered["impact"].eq(impact).sum()) for impact in IMPACTS)
    injected = f"{plural(len(delivered), 'failure')} {'was' if len(delivered) == 1 else 'were'} injected"
    if effective == len(delivered):
        text = f"{injected}, and none hit an answer that was bad anyway."
        return SummaryFinding(text, "receipts") if delivered["point"].eq("output").any() else None
    unknown_text = f" Of {undetermined:,} it cannot be told." if undetermined else ""
    text = f"{injected}; {masked:,} hit answers that were bad anyway, so {effective:,} tell what a failure costs.{unknown_text}"
    return SummaryFinding(text, "receipts")


def _recovery(run: Run, arms: Arms) -> SummaryFinding | None:
    """Return a finding with a sentence for each condition with faults: how many of the trials that are solved without faults
    each architecture solves under them, the best first."""
    by_condition: dict[Condition, list[RecoveryRate]] = {}
    for rate in recovery_rates(run, arms):
        by_condition.setdefault(rate.arm.condition, []).append(rate)
    lines = []
    for condition, rates in by_condition.items():
        if n := rates[0].recovered.n:  # equal for all architectures
            where = _where(run, condition, _with_model(run, condition.model), always_plan=True)
            lines.append(f"on {where}, {_recovered_text(rates, n)}")
    return _finding(lines, "recovery")


def _recovered_text(rates: Sequence[RecoveryRate], n: int) -> str:
    """Return how many of n trials each architecture solves, the best first."""
    (first, k), *others = sorted(((rate.arm.architecture, rate.recovered.k) for rate in rates), key=lambda pair: -pair[1])
    if not others:
        return f"{first} solved {k} of the {plural(n, 'trial')} that it solves without faults"
    ranking = _ranking([f"{first} solved {k}", *(f"{name} {k}" for name, k in others)])
    return f"of {plural(n, 'trial')} that every architecture solves without faults, {ranking}"


def _right_answers(run: Run, arms: Arms) -> SummaryFinding | None:
    """Return what each architecture solved without faults; under faults, if no trial was without."""
    graded = run.trials[run.trials["correct"].notna()]
    if graded.empty or has_only_instruments(arms):
        return None
    if not graded["outcome"].eq("solved").any():
        return SummaryFinding(f"No trial was solved, 0 of {len(graded):,}, so nothing is said about right answers.", "outcomes")
    groups = compared_arms(run, arms)
    fault_free = [group for group in groups if group.condition.plan == FAULT_FREE]
    lines = []
    for group in fault_free or groups:
        shares = sorted(((arm.solved(), name) for name, arm in group.arms.items()), key=lambda pair: -(pair[0].rate or 0))
        counts = [(name, share) for share, name in shares if share.n]
        if counts:
            where = f"on {group.condition.scenario}{group.by} {plan_phrase(group.condition.plan)}"
            lines.append(f"{where}, {_ranking(solved_texts(counts))}")
    return _finding(lines, "outcomes")


def _damage(run: Run, arms: Arms) -> SummaryFinding | None:
    """Return a finding on the number of trials in which each architecture did damage in a world, the least first."""
    lines = []
    for group in compared_arms(run, arms):
        shares = dict[str, float]()
        for name, arm in group.arms.items():
            harmed, trials = count_harmed_trials(arm)
            if trials:
                shares[f"{harmed} of {trials} trials of {name}{damage_without_faults(arms, arm)}"] = harmed / trials
        if shares and group.condition.plan != FAULT_FREE:
            where = _where(run, group.condition, group.by, always_plan=True)
            lines.append(f"on {where}, damage was done in {_ranking(sorted(shares, key=lambda text: shares[text]))}")
    return _finding(lines, "world_damage")


# Limits


def _limits(run: Run, arms: Arms) -> Iterator[str]:
    """Yield what the report does not show, one sentence for each limit."""
    if has_only_instruments(arms):
        yield "What the answers lead to: they were only asked for, and nothing was done with them."
    elif not run.trials["outcome"].eq("solved").any():
        yield "Whether a failure is recovered to a right answer: no trial was solved."
    elif {FAULT_FREE} < set(run.names("plan")) and not any(recovery_rates(run, arms)):
        yield "Whether a failure is recovered to a right answer: no trial without faults was solved."
    yield _task_limit(run)
    yield "Other models, prompts and settings than those that were run."
    yield from _floor_limits(run, arms)
    has_plans = len(set(run.names("plan")) - {FAULT_FREE}) > 1
    unpriced = dict.fromkeys(
        f"{arm.architecture} on {arm.condition.scenario}"
        f"{f' {plan_phrase(arm.condition.plan)}' if has_plans else ''}{_with_model(run, arm.condition.model)}"
        for arm in each_arm(arms)
        if arm.usable["faults_delivered"].any() and arm.mean(PRICE.tokens.name).n < MIN_PRICED_TRIALS
    )
    if unpriced:
        few = f"fewer than {MIN_PRICED_TRIALS} trials had an effective fault that was noticed"
        yield f"The whole price of a failure for {join_names(list(unpriced))}: {few}."


def _floor_limits(run: Run, arms: Arms) -> Iterator[str]:
    """Yield a limit for each pack on which keyword rules without a model score higher than every architecture."""
    for scenario in run.names("scenario"):
        scores = [arm.mean(SCORE.name).mean or 0.0 for arm in each_arm(arms) if arm.condition.scenario == scenario]
        baseline = run.pack(scenario).baseline
        if baseline and scores and baseline.score > max(scores):
            comparison = f"keyword rules without any model score {baseline.score:.3f}, the best arm {max(scores):.3f}"
            yield f"That a model is needed for {scenario}: {comparison}."


def _task_limit(run: Run) -> str:
    """Return the limit on other tasks in words. It depends on whether packs have one instance or several."""
    instances = instances_by_scenario(run)
    sole = [scenario for scenario, names in instances.items() if len(names) == 1]
    several = [scenario for scenario in instances if scenario not in sole]
    if not sole:
        return "Tasks of other kinds: intervals cluster by instance and hold for tasks like these, with these models."
    if not several:
        return "Other tasks: each pack has one task, so intervals hold for repetitions of that task alone, with these models."
    return (
        f"Other tasks: with one task ({join_names(sole)}), intervals hold for repetitions of that task alone; with several "
        f"({join_names(several)}), they cluster by instance and hold for tasks like these; with these models."
    )
