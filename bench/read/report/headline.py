"""The title of a report: its first finding in short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.common.wording import plural
from bench.read.analysis.arms import Arm, Arms, Condition
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import CALLS, COST, FIRST_ROUND, LEAST_PRICED, METRICS, TOKENS
from bench.read.analysis.statistics import Share
from bench.read.compare.models import ModelMeasure, ModelPair
from bench.read.render.cells import BoundedNumber, value_of
from bench.read.render.labels import each_arm, extremes_text, join_names, model_label
from bench.record.config import FAULT_FREE

LONGEST = 150
"""The most characters of a title."""
MODELS = 2
"""The least number of models that are compared."""


def headline_of(run: Run, arms: Arms, models: Sequence[ModelPair]) -> str:
    """Return the title of a report: the first of its findings on models compared, damage in a world, the cost of a repair, and
    what was solved. If the title is longer than LONGEST, the names of models are cut to the part in which they differ."""
    findings = (*_models(run, models), *_damage(run, arms), *_repair(run, arms), *_extremes_of_solving(run, arms))
    headline = next(iter(findings), "What was run")
    if len(headline) > LONGEST:
        for label, short in _shortened_labels([model_label(run, model) for model in run.names("model")]).items():
            headline = headline.replace(label, short)
    return headline


def _shortened_labels(labels: Sequence[str]) -> Mapping[str, str]:
    """Return label -> the words of the name that distinguish it: words that all names share at the beginning or end are left
    out. A mark says that a model is recorded or simulated."""
    words = [label.partition(" (")[0].split("-") for label in labels]
    most = min(map(len, words)) - 1
    begins = next((n for n in range(most) if len({tuple(each[: n + 1]) for each in words}) > 1), most)
    ends = next((n for n in range(most - begins) if len({tuple(each[-n - 1 :]) for each in words}) > 1), most - begins)
    marks = {"recorded": "recorded:", "SIMULATED": "(SIMULATED)"}
    return {
        label: " ".join(
            ["-".join(each[begins : len(each) - ends]), *(f"({mark})" for mark, of in marks.items() if of in label)]
        )
        for label, each in zip(labels, words, strict=True)
    }


@dataclass(frozen=True)
class ComparedArms:
    """Arms that a sentence compares, by name: the architectures of a condition, or if there are several models, the models of
    one architecture. `by` then names the architecture (" with static"); else it is "". `condition` is the first arm's."""

    condition: Condition
    by: str
    named: Mapping[str, Arm]


def compared_arms(run: Run, arms: Arms) -> list[ComparedArms]:
    """Return the arms that sentences compare, in the config's order."""
    if len(run.names("model")) < MODELS:
        return [ComparedArms(condition, "", named) for condition, named in arms.items()]
    alike: dict[tuple[str, str, str], dict[str, Arm]] = {}
    for arm in each_arm(arms):
        place = arm.condition.scenario, arm.condition.plan, arm.architecture
        alike.setdefault(place, {})[model_label(run, arm.condition.model)] = arm
    return [
        ComparedArms(next(iter(named.values())).condition, f" with {architecture}", named)
        for (_, _, architecture), named in alike.items()
    ]


def count_harmed_trials(arm: Arm) -> tuple[int, int]:
    """Return in how many trials of an arm damage was done in a world, and how many trials there are."""
    lived = arm.usable[arm.usable["lives"].notna()]
    harmed = lived[[metric.name for metric in METRICS if metric.harm]].gt(0).any(axis=1).fillna(False)
    return int(harmed.sum()), len(lived)


def has_only_instruments(arms: Arms) -> bool:
    """Return whether all architectures are instruments, which have no task to solve."""
    return all(arm.is_instrument for arm in each_arm(arms))


def _damage(run: Run, arms: Arms) -> Iterator[str]:
    """Name the architectures that did the least and the most damage under each fault plan. Plans under which these differ come
    first."""
    sentences = list[tuple[bool, str]]()
    for group in compared_arms(run, arms):
        condition, named = group.condition, group.named
        counts = sorted((k / n, name, k, n) for name, arm in named.items() for k, n in [count_harmed_trials(arm)] if n)
        if counts and condition.plan != FAULT_FREE:
            (_, first, least, trials), *others = dict.fromkeys([counts[0], counts[-1]])
            texts = [f"{first} did damage in {least} of {trials} trials{_solved_nothing(run, named[first])}"]
            texts += [f"{name} in {k} of {n}{_solved_nothing(run, named[name])}" for _, name, k, n in others]
            where = f"Under {condition.plan} on {condition.scenario}{group.by}"
            marked = "" if group.by else _mark(run, condition)
            sentences.append((counts[0][0] == counts[-1][0], f"{where}, {join_names(texts)}{_none_solved(run)}{marked}"))
    yield from (text for _, text in sorted(sentences, key=lambda pair: pair[0]))


def _solved_nothing(run: Run, arm: Arm) -> str:
    """Return a mark for an architecture that solved nothing although another did. If it did no damage, it may have done nothing
    at all."""
    share = arm.solved()
    return " (and solved none)" if share.n and not share.k and not _none_solved(run) else ""


def _models(run: Run, pairs: Sequence[ModelPair]) -> Iterator[str]:
    """Say of each model, over all arms, how much it solved beside the first, at how many times its dollars, and the verdict of
    `bench compare`."""
    solved = [pair for pair in pairs if "solved" in pair.measures]
    if len(pairs) == 1 and solved:
        [pair] = pairs
        first, second = (model_label(run, name) for name in (pair.first, pair.second))
        yield f"{_solved_beside(pair, first, second)}: {pair.verdict}"
    elif solved:
        verdicts = [f"{model_label(run, pair.second)} {_gap(pair.measures['solved'])[0]} ({pair.verdict})" for pair in solved]
        first = f"{model_label(run, pairs[0].first)}, which solved {_k_of_n(solved[0].measures['solved'], 0)} trials"
        yield f"Beside {first}: {join_names(verdicts)}"


def _k_of_n(solved: ModelMeasure, side: int) -> str:
    """Return how many pairs a model solved: "3 of 10"."""
    return f"{round((solved.values[side] or 0.0) * solved.pairs)} of {solved.pairs}"


def _gap(solved: ModelMeasure) -> tuple[str, str]:
    """Return in words by how many points the second model solved more or fewer than the first, and the interval of that."""
    gap = solved.difference
    value, low, high = (None if bound is None else 100 * bound for bound in (value_of(gap), gap.low, gap.high))
    if not value:
        return "as many", ""
    if value < 0:
        low, high = None if high is None else -high, None if low is None else -low
    number, interval = BoundedNumber(abs(value), low, high, 1, limited=gap).text().split(" ", 1)
    return f"{number} points {'more' if value > 0 else 'fewer'}", f" {interval}"


def _solved_beside(pair: ModelPair, first: str, second: str) -> str:
    solved, times = pair.measures["solved"], _times(pair)
    if not any(solved.values):
        nothing = f"Of {plural(solved.pairs, 'trial')} each, neither {first} nor {second} solved any"
        return nothing + (f", and {second} took {times}" if times else "")
    gap, interval = _gap(solved)
    text = f"{second} solved {gap} than {first}{interval}, {_k_of_n(solved, 1)} trials against {_k_of_n(solved, 0)}"
    if not interval:
        text = f"{second} solved as many as {first}, {_k_of_n(solved, 0)} trials"
    return text + (f", at {times}" if times else "")


def _times(pair: ModelPair) -> str:
    """Return in words how many times the dollars of the first model the second took, or the tokens if dollars are not known."""
    for name, what in ((COST.name, "dollars"), (TOKENS.name, "tokens")):
        if name in pair.measures and all(pair.measures[name].values):
            before, after = pair.measures[name].values
            times = (after or 0.0) / (before or 1.0)
            return f"{times:.2f} times the {what}" if times >= 0.01 else f"{times:.1g} times the {what}"
    return ""


def solved_texts(solvers: Iterable[tuple[str, Share]]) -> list[str]:
    """Return in words how much each solver solved: `b solved 4 of 4 trials`, `a 1 of 4`. A solver is a name and its share."""
    (first, most), *others = solvers
    texts = [f"{first} solved {most.k} of {plural(most.n, 'trial')}"]
    return [*texts, *(f"{name} {share.k} of {share.n}" for name, share in others)]


def _repair(run: Run, arms: Arms) -> Iterator[str]:
    """Yield a sentence for each condition: the fewest and the most mean tokens of the first repair round, with the
    architectures that need them. An architecture with fewer than LEAST_PRICED trials is left out. An architecture with a
    learned policy is always named; if it has too few trials, there is no sentence."""
    about = run.manifest.policies.keys()
    for condition, named in arms.items():
        rounds = {name: arm.mean(FIRST_ROUND.tokens.name) for name, arm in named.items()}
        means = {name: mean.mean for name, mean in rounds.items() if mean.n >= LEAST_PRICED}
        means_said = extremes_text(means, "{:,.0f}".format, " tokens", about) if condition.plan != FAULT_FREE else ""
        if means_said and about & named.keys() <= means.keys():
            on = f"{condition.scenario}{_by(run, condition)}{_under(run, condition)}"
            yield f"A repair on {on} took {means_said}{_none_solved(run)}{_mark(run, condition)}"


def _extremes_of_solving(run: Run, arms: Arms) -> Iterator[str]:
    """Name the architectures that solved the most and the least of the first pack. An instrument has nothing to solve."""
    condition, named = next(iter(arms.items()))
    if has_only_instruments(arms):
        name, arm = next(iter(named.items()))
        asked = int(arm.trials[CALLS.name].sum())
        yield f"{name} asked the model {asked:,} times on {condition.scenario}{_mark(run, condition)}"
        return
    shares = sorted(
        (share.rate, name, share) for name, arm in named.items() for share in [arm.solved()] if share.rate is not None
    )
    if not run.trials["outcome"].eq("solved").any():
        yield f"No trial was solved, 0 of {len(run.trials):,}{_mark(run, condition)}"
    elif shares:
        ends = dict.fromkeys([shares[-1][1:], shares[0][1:]])
        yield f"On {condition.scenario}, {join_names(solved_texts(ends))}{_mark(run, condition)}"


def _none_solved(run: Run) -> str:
    return "" if run.trials["outcome"].eq("solved").any() else ", and no trial was solved"


def _by(run: Run, condition: Condition) -> str:
    """Name the model if the run has several."""
    return f" with {condition.model}" if len(run.names("model")) >= MODELS else ""


def _under(run: Run, condition: Condition) -> str:
    """Name the fault plan if the run has several."""
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    return f" under {condition.plan}" if len(plans) > 1 else ""


def _mark(run: Run, condition: Condition) -> str:
    """Return a mark for the arms of a simulated model."""
    return " (SIMULATED)" if run.is_simulated(condition.model) else ""
