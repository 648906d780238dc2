"""The title of a report: its first finding in short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.common.wording import plural
from bench.read.analysis.arms import Arm, Arms, Condition
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import CALLS, COST, FIRST_ROUND, LEAST_PRICED, METRICS
from bench.read.analysis.per_solved import per_solved
from bench.read.analysis.statistics import Share
from bench.read.render.cells import BoundedNumber
from bench.read.render.labels import each_arm, extremes_said, listed, model_label
from bench.record.config import FAULT_FREE

LONGEST = 150
"""The most characters of a title."""
MODELS = 2
"""The least number of models that are compared."""


def headline_of(run: Run, arms: Arms) -> str:
    """Return the first of these findings that the run has: damage in a world, models compared, the cost of a repair, what was
    solved. If the title is longer than LONGEST, the names of models are cut to the part in which they differ."""
    findings = (*_damage(run, arms), *_models(run, arms), *_repair(run, arms), *_solved(run, arms))
    headline = next(iter(findings), "What was run")
    if len(headline) > LONGEST:
        for label, short in _told_apart([model_label(run, model) for model in run.names("model")]).items():
            headline = headline.replace(label, short)
    return headline


def _told_apart(labels: Sequence[str]) -> Mapping[str, str]:
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


def harmed_trials(arm: Arm) -> tuple[int, int]:
    """Return in how many trials of an arm damage was done in a world, and how many trials there are."""
    lived = arm.usable[arm.usable["lives"].notna()]
    harmed = lived[[metric.name for metric in METRICS if metric.harm]].gt(0).any(axis=1).fillna(False)
    return int(harmed.sum()), len(lived)


def only_asked(arms: Arms) -> bool:
    """Return whether all architectures are instruments, which have no task to solve."""
    return all(arm.is_instrument for arm in each_arm(arms))


def paid(run: Run, arm: Arm) -> str:
    """Return in words the cost of a solved task, for a reader who chooses among models. "" if there is one model, or no
    price."""
    spent = per_solved(arm.trials, COST.name)
    if len(run.names("model")) < MODELS or spent.value is None:
        return ""
    value, interval = BoundedNumber(spent.value, spent.low, spent.high, COST.digits).text().split(" ", 1)
    return f" at {value} $ each {interval}"


def _damage(run: Run, arms: Arms) -> Iterator[str]:
    """Name the architectures that did the least and the most damage under each fault plan. Plans under which these differ come
    first."""
    sentences = list[tuple[bool, str]]()
    for group in compared_arms(run, arms):
        condition, named = group.condition, group.named
        counts = sorted((k / n, name, k, n) for name, arm in named.items() for k, n in [harmed_trials(arm)] if n)
        if counts and condition.plan != FAULT_FREE:
            (_, first, least, trials), *others = dict.fromkeys([counts[0], counts[-1]])
            texts = [f"{first} did damage in {least} of {trials} trials{_solved_nothing(run, named[first])}"]
            texts += [f"{name} in {k} of {n}{_solved_nothing(run, named[name])}" for _, name, k, n in others]
            where = f"Under {condition.plan} on {condition.scenario}{group.by}"
            marked = "" if group.by else _marked(run, condition)
            sentences.append((counts[0][0] == counts[-1][0], f"{where}, {listed(texts)}{_none_solved(run)}{marked}"))
    yield from (text for _, text in sorted(sentences, key=lambda pair: pair[0]))


def _solved_nothing(run: Run, arm: Arm) -> str:
    """Return a mark for an architecture that solved nothing although another did. If it did no damage, it may have done nothing
    at all."""
    share = arm.solved()
    return " (and solved none)" if share.n and not share.k and not _none_solved(run) else ""


def _models(run: Run, arms: Arms) -> Iterator[str]:
    """Yield in words what each model solved in the first pack with the same architecture. If none solved any, return what a
    repair took."""
    if len(run.names("model")) < MODELS:
        return
    first = next(iter(arms))
    groups = [group for group in compared_arms(run, arms) if group.condition.scenario == first.scenario]
    here = [[*group.named.values()] for group in groups if group.condition.plan == first.plan]
    alike = [named for named in here if len(named) == max(map(len, here)) >= MODELS]
    if any(arm.solved().k for named in alike for arm in named):
        yield _solved_alike(run, max(alike, key=_solved_and_cheap))
    struck = [group for group in groups if group.condition.plan != FAULT_FREE]
    same_plan = [group for group in struck if group.condition.plan == struck[0].condition.plan]
    for group in sorted(same_plan, key=_shows_no_difference):
        means = {name: arm.mean(FIRST_ROUND.tokens.name).mean for name, arm in group.named.items()}
        if sum(mean is not None for mean in means.values()) >= MODELS:
            means_said = extremes_said(means, "{:,.0f}".format, " tokens")
            yield f"A repair on {first.scenario}{group.by} took {means_said}{_none_solved(run)}"


def _shows_no_difference(group: ComparedArms) -> bool:
    """Return whether the interval of the cheapest first repair, divided by the dearest, reaches 1."""
    means = {name: arm.mean(FIRST_ROUND.tokens.name).mean for name, arm in group.named.items()}
    known = sorted((mean, name) for name, mean in means.items() if mean is not None)
    if len(known) < MODELS:
        return True
    high = group.named[known[0][1]].ratio_to(group.named[known[-1][1]], FIRST_ROUND.tokens.name).high
    return high is None or high >= 1


def _solved_alike(run: Run, named: Sequence[Arm]) -> str:
    """Return in words what the models solved with one architecture: of two models which solved more, by how much, and at how
    many times the dollars."""
    on = f"On {named[0].condition.scenario} with {named[0].architecture}"
    if len(named) > MODELS:
        solvers = [(model_label(run, arm.condition.model), arm.solved(), "") for arm in named]
        return f"{on}, {listed(solved_texts(solvers))}"
    most, least = sorted(named, key=lambda arm: -(arm.solved().rate or 0.0))
    (better, first), (other, second) = ((model_label(run, arm.condition.model), arm.solved()) for arm in (most, least))
    gap, ratio = most.solved_less(least), most.ratio_to(least, COST.name)
    n = plural(first.n, "trial")
    if gap.low is not None and gap.low > 0:
        text = f"{on}, {better} solved more than {other}: {first.k} of {n} against {second.k} of {second.n}"
    else:
        text = f"{on}, {better} solved {first.k} of {n} and {other} {second.k} of {second.n}, no clear difference"
    text += f" ({BoundedNumber(gap.difference, gap.low, gap.high, 1, percent=True).text()})" if gap.pairs else ""
    times = BoundedNumber(ratio.ratio, ratio.low, ratio.high, 2).text()
    return text + (f", and took {times} times the dollars" if ratio.ratio else "")


def _solved_and_cheap(named: Sequence[Arm]) -> tuple[float, float]:
    """Return the sort key of an architecture: what all models together solved with it, and then its cost, so that the cheapest
    of equals comes last."""
    spent = [per_solved(arm.trials, COST.name).value or 0.0 for arm in named]
    return sum(arm.solved().rate or 0.0 for arm in named), -sum(spent)


def solved_texts(solvers: Iterable[tuple[str, Share, str]]) -> list[str]:
    """Return in words how much each solver solved: `b solved 4 of 4 trials`, `a 1 of 4`. A solver is a name, its share, and a
    text that follows."""
    (first, most, behind), *others = solvers
    texts = [f"{first} solved {most.k} of {plural(most.n, 'trial')}{behind}"]
    return [*texts, *(f"{name} {share.k} of {share.n}{more}" for name, share, more in others)]


def _repair(run: Run, arms: Arms) -> Iterator[str]:
    """Say what a repair took, over at least LEAST_PRICED trials of each architecture. An architecture that follows a learned
    policy is named, since the run is about it."""
    about = run.manifest.policies.keys()
    for condition, named in arms.items():
        rounds = {name: arm.mean(FIRST_ROUND.tokens.name) for name, arm in named.items()}
        means = {name: mean.mean for name, mean in rounds.items() if mean.n >= LEAST_PRICED}
        means_said = extremes_said(means, "{:,.0f}".format, " tokens", about) if condition.plan != FAULT_FREE else ""
        if means_said and about & named.keys() <= means.keys():
            on = f"{condition.scenario}{_by(run, condition)}{_under(run, condition)}"
            yield f"A repair on {on} took {means_said}{_none_solved(run)}{_marked(run, condition)}"


def _solved(run: Run, arms: Arms) -> Iterator[str]:
    """Name the architectures that solved the most and the least of the first pack. An instrument has nothing to solve."""
    condition, named = next(iter(arms.items()))
    if only_asked(arms):
        name, arm = next(iter(named.items()))
        asked = int(arm.trials[CALLS.name].sum())
        yield f"{name} asked the model {asked:,} times on {condition.scenario}{_marked(run, condition)}"
        return
    shares = sorted(
        (share.rate, name, share) for name, arm in named.items() for share in [arm.solved()] if share.rate is not None
    )
    if not run.trials["outcome"].eq("solved").any():
        yield f"No trial was solved, 0 of {len(run.trials):,}{_marked(run, condition)}"
    elif shares:
        ends = [(name, share, "") for name, share in dict.fromkeys([shares[-1][1:], shares[0][1:]])]
        yield f"On {condition.scenario}, {listed(solved_texts(ends))}{_marked(run, condition)}"


def _none_solved(run: Run) -> str:
    return "" if run.trials["outcome"].eq("solved").any() else ", and no trial was solved"


def _by(run: Run, condition: Condition) -> str:
    return f" with {condition.model}" if len(run.names("model")) >= MODELS else ""


def _under(run: Run, condition: Condition) -> str:
    """Name the fault plan if the run has several."""
    plans = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    return f" under {condition.plan}" if len(plans) > 1 else ""


def _marked(run: Run, condition: Condition) -> str:
    return " (SIMULATED)" if run.is_simulated(condition.model) else ""
