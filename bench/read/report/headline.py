"""The title of a report: its first finding in short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.common.wording import plural
from bench.read.analysis.arms import Arm, Arms, Condition
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import CALLS, COST, FIRST_ROUND, METRICS, MIN_PRICED_TRIALS, TOKENS
from bench.read.analysis.statistics import Share
from bench.read.compare.models import ModelMeasure, ModelPair
from bench.read.render.cells import BoundedNumber, value_of
from bench.read.render.labels import each_arm, extremes_text, join_names, model_label
from bench.record.config import FAULT_FREE

MAX_TITLE_CHARS = 150
MIN_COMPARED_MODELS = 2


def headline_of(run: Run, arms: Arms, models: Sequence[ModelPair]) -> str:
    """Return the title of a report: its first finding on compared models, on damage in a world, on the cost of a repair, or on
    what was solved. If the title is longer than MAX_TITLE_CHARS, each model's name is cut to the part that distinguishes
    it."""
    findings = (*_models(run, models), *_damage(run, arms), *_repair_costs(run, arms), *_extremes_of_solving(run, arms))
    headline = next(iter(findings), "What was run")
    if len(headline) > MAX_TITLE_CHARS:
        for label, short in _shortened_labels([model_label(run, model) for model in run.names("model")]).items():
            headline = headline.replace(label, short)
    return headline


def _shortened_labels(labels: Sequence[str]) -> Mapping[str, str]:
    """Return label -> shorter label: the words that all models' names share at the beginning or the end are left out. A mark
    says that a model is recorded or simulated."""
    names = [label.partition(" (")[0].split("-") for label in labels]
    most_removed = min(map(len, names)) - 1
    start = min(_count_shared_words(names), most_removed)
    end = min(_count_shared_words([name[::-1] for name in names]), most_removed - start)
    shortened = {}
    for label, name in zip(labels, names, strict=True):
        marks = (" (recorded)" if "recorded:" in label else "") + (" (SIMULATED)" if "(SIMULATED)" in label else "")
        shortened[label] = "-".join(name[start : len(name) - end]) + marks
    return shortened


def _count_shared_words(names: Sequence[Sequence[str]]) -> int:
    """Return how many words all names share at the beginning."""
    return next((n for n, words in enumerate(zip(*names, strict=False)) if len(set(words)) > 1), min(map(len, names)))


@dataclass(frozen=True)
class ComparedArms:
    """The arms that a sentence compares, by name: the architectures of a condition, or if there are several models, the models
    with one architecture. `by` then names this architecture (" with static"); else it is "". `condition` is the first arm's."""

    condition: Condition
    by: str
    arms: Mapping[str, Arm]


def compared_arms(run: Run, arms: Arms) -> list[ComparedArms]:
    """Return the arms that sentences compare, in the config's order."""
    if len(run.names("model")) < MIN_COMPARED_MODELS:
        return [ComparedArms(condition, "", by_architecture) for condition, by_architecture in arms.items()]
    groups: dict[tuple[str, str, str], dict[str, Arm]] = {}
    for arm in each_arm(arms):
        group = arm.condition.scenario, arm.condition.plan, arm.architecture
        groups.setdefault(group, {})[model_label(run, arm.condition.model)] = arm
    return [
        ComparedArms(next(iter(by_model.values())).condition, f" with {architecture}", by_model)
        for (_, _, architecture), by_model in groups.items()
    ]


def count_harmed_trials(arm: Arm) -> tuple[int, int]:
    """Return the number of an arm's trials in which damage was done in a world, and the number of its trials in a world."""
    in_world = arm.usable[arm.usable["lives"].notna()]
    harmed = in_world[[metric.name for metric in METRICS if metric.harm]].gt(0).any(axis=1).fillna(False)
    return int(harmed.sum()), len(in_world)


def damage_without_faults(arms: Arms, arm: Arm) -> str:
    """Return a remark on the trials of an arm's architecture that did damage although no fault was planned; "" if none did."""
    of_same = (each for each in each_arm(arms) if each.architecture == arm.architecture)
    controls = (each for each in of_same if each.condition == replace(arm.condition, plan=FAULT_FREE))
    harmed, trials = next(map(count_harmed_trials, controls), (0, 0))
    return f" (without faults in {harmed} of {trials})" if harmed else ""


def has_only_instruments(arms: Arms) -> bool:
    """Whether all architectures are instruments, which have no task to solve."""
    return all(arm.is_instrument for arm in each_arm(arms))


def _damage(run: Run, arms: Arms) -> Iterator[str]:
    """Yield a sentence for each condition with faults: the architectures that did the least and the most damage. Sentences in
    which these two differ come first."""
    unlike, alike = list[str](), list[str]()
    for group in compared_arms(run, arms):
        condition = group.condition
        counts = [(name, *count_harmed_trials(arm)) for name, arm in group.arms.items()]
        shares = sorted((harmed / trials, name, harmed, trials) for name, harmed, trials in counts if trials)
        if shares and condition.plan != FAULT_FREE:
            # `worst` is empty if there is only one architecture.
            (least, name, harmed, trials), *worst = dict.fromkeys([shares[0], shares[-1]])
            remarks = {name: damage_without_faults(arms, arm) + _solved_nothing(run, arm) for name, arm in group.arms.items()}
            texts = [f"{name} did damage in {harmed} of {trials} trials{remarks[name]}"]
            texts += [f"{name} in {harmed} of {trials}{remarks[name]}" for _, name, harmed, trials in worst]
            condition_text = f"Under {condition.plan} on {condition.scenario}{group.by}"
            mark = "" if group.by else _simulated_mark(run, condition)
            sentences = alike if shares[-1][0] == least else unlike
            sentences.append(f"{condition_text}, {join_names(texts)}{_none_solved(run)}{mark}")
    yield from (*unlike, *alike)


def _solved_nothing(run: Run, arm: Arm) -> str:
    """Return a mark for an architecture that solved no trial although another did: without damage it may have done nothing at
    all."""
    share = arm.solved()
    return " (and solved none)" if share.n and not share.k and not _none_solved(run) else ""


def _models(run: Run, pairs: Sequence[ModelPair]) -> Iterator[str]:
    """Yield one sentence on how much each further model solved beside the first, the ratio of their costs, and the verdict of
    `bench compare`, over all arms."""
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
    """Return how many of the pairs one model solved, as "3 of 10". `side` is 0 for the first model, 1 for the second."""
    return f"{round((solved.values[side] or 0.0) * solved.pairs)} of {solved.pairs}"


def _gap(solved: ModelMeasure) -> tuple[str, str]:
    """Return how many percentage points the second model solved more or fewer than the first, in words, and the interval of
    this difference."""
    difference = solved.difference
    bounds = (value_of(difference), difference.low, difference.high)
    points, low, high = (None if bound is None else 100 * bound for bound in bounds)
    if not points:
        return "as many", ""
    if points < 0:  # without the sign, the ends of the interval change places
        low, high = None if high is None else -high, None if low is None else -low
    number, interval = BoundedNumber(abs(points), low, high, 1, limited=difference).text().split(" ", 1)
    return f"{number} points {'more' if points > 0 else 'fewer'}", f" {interval}"


def _solved_beside(pair: ModelPair, first: str, second: str) -> str:
    """Return a sentence on what the second model of a pair solved beside the first, and at how many times its cost."""
    solved, cost = pair.measures["solved"], _cost_ratio(pair)
    if not any(solved.values):
        nothing = f"Of {plural(solved.pairs, 'trial')} each, neither {first} nor {second} solved any"
        return nothing + (f", and {second} took {cost}" if cost else "")
    gap, interval = _gap(solved)
    text = f"{second} solved {gap} than {first}{interval}, {_k_of_n(solved, 1)} trials against {_k_of_n(solved, 0)}"
    if not interval:
        text = f"{second} solved as many as {first}, {_k_of_n(solved, 0)} trials"
    return text + (f", at {cost}" if cost else "")


def _cost_ratio(pair: ModelPair) -> str:
    """Return the second model's dollars as a multiple of the first model's, in words; their tokens if dollars are not known."""
    for name, unit in ((COST.name, "dollars"), (TOKENS.name, "tokens")):
        if name in pair.measures and all(pair.measures[name].values):
            before, after = pair.measures[name].values
            ratio = (after or 0.0) / (before or 1.0)
            return f"{ratio:.2f} times the {unit}" if ratio >= 0.01 else f"{ratio:.1g} times the {unit}"
    return ""


def solved_texts(solvers: Iterable[tuple[str, Share]]) -> list[str]:
    """Return in words how much each solver, a name with its share, solved: ["b solved 4 of 4 trials", "a 1 of 4"]."""
    (first, share), *others = solvers
    texts = [f"{first} solved {share.k} of {plural(share.n, 'trial')}"]
    return [*texts, *(f"{name} {share.k} of {share.n}" for name, share in others)]


def _repair_costs(run: Run, arms: Arms) -> Iterator[str]:
    """Yield a sentence for each condition with faults: the fewest and the most mean tokens of the first repair round, with the
    architectures that took them. An architecture with fewer than MIN_PRICED_TRIALS trials is left out. An architecture with a
    learned policy is always named; if it has too few trials, there is no sentence."""
    learned = run.manifest.policies.keys()
    for condition, by_architecture in arms.items():
        rounds = {name: arm.mean(FIRST_ROUND.tokens.name) for name, arm in by_architecture.items()}
        means = {name: mean.mean for name, mean in rounds.items() if mean.n >= MIN_PRICED_TRIALS}
        extremes = extremes_text(means, "{:,.0f}".format, " tokens", learned) if condition.plan != FAULT_FREE else ""
        if extremes and learned & by_architecture.keys() <= means.keys():
            where = f"{condition.scenario}{_with_model(run, condition)}{_under_plan(run, condition)}"
            yield f"A repair on {where} took {extremes}{_none_solved(run)}{_simulated_mark(run, condition)}"


def _extremes_of_solving(run: Run, arms: Arms) -> Iterator[str]:
    """Yield one sentence: the architectures that solved the most and the least in the first condition, or that no trial was
    solved. An instrument solves nothing, so its calls are counted instead."""
    condition, by_architecture = next(iter(arms.items()))
    mark = _simulated_mark(run, condition)
    if has_only_instruments(arms):
        name, arm = next(iter(by_architecture.items()))
        yield f"{name} asked the model {int(arm.trials[CALLS.name].sum()):,} times on {condition.scenario}{mark}"
        return
    shares = [(name, arm.solved()) for name, arm in by_architecture.items()]
    ranked = sorted((share.rate, name, share) for name, share in shares if share.rate is not None)
    if not run.trials["outcome"].eq("solved").any():
        yield f"No trial was solved, 0 of {len(run.trials):,}{mark}"
    elif ranked:
        (_, worst, least), (_, best, most) = ranked[0], ranked[-1]
        texts = solved_texts({best: most, worst: least}.items())  # one text if an architecture is both
        yield f"On {condition.scenario}, {join_names(texts)}{mark}"


def _none_solved(run: Run) -> str:
    """Return a clause that no trial of the run was solved; "" if some trial was."""
    return "" if run.trials["outcome"].eq("solved").any() else ", and no trial was solved"


def _with_model(run: Run, condition: Condition) -> str:
    """Return the condition's model as a phrase; "" if the run has one model."""
    return f" with {condition.model}" if len(run.names("model")) >= MIN_COMPARED_MODELS else ""


def _under_plan(run: Run, condition: Condition) -> str:
    """Return the condition's fault plan as a phrase; "" if the run has one."""
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    return f" under {condition.plan}" if len(plans) > 1 else ""


def _simulated_mark(run: Run, condition: Condition) -> str:
    """Return a mark if the condition's model is simulated; else ""."""
    return " (SIMULATED)" if run.is_simulated(condition.model) else ""
