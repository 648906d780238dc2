"""Context: what a failure costs by how much there is to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.arms import Arm, Arms, Condition, arms_of
from bench.analysis.frames import Run
from bench.analysis.statistics import Mean, mean_of
from bench.errors import ResultsError


@dataclass(frozen=True)
class Growth:
    """One architecture on one pack in several sizes, under one fault plan.

    sizes    (tokens of all documents, the arm of that size), ascending
    slope    retry tokens more by token of document: a straight line through the sizes of each repetition by least squares, and
             the mean of the repetitions' slopes, which is the slope of all of them together
    """

    pack: str
    model: str
    plan: str
    architecture: str
    sizes: tuple[tuple[int, Arm], ...]
    slope: Mean


def context(run: Run) -> list[Growth]:
    """By pack, model, fault plan and architecture.

    Raises ResultsError where no pack was run in two sizes or more, or the run does not say how large its documents are.
    """
    arms = arms_of(run)
    packs = {pack: sizes for pack, sizes in _sizes(run).items() if len(sizes) > 1}
    if not packs:
        raise ResultsError("needs a pack in two sizes or more, and a manifest that tells the tokens of its documents")
    return [
        growth
        for pack, sizes in packs.items()
        for model in run.names("model")
        for plan in run.names("fault")
        for architecture in run.names("architecture")
        if (growth := _growth(arms, pack, sizes, model, plan, architecture))
    ]


def _sizes(run: Run) -> dict[str, dict[str, int]]:
    """Pack -> scenario -> tokens of its documents, ascending."""
    known = {name: run.manifest["scenarios"].get(name, {}).get("document_tokens") for name in run.names("scenario")}
    packs: dict[str, dict[str, int]] = {}
    for scenario in sorted((name for name, tokens in known.items() if tokens), key=lambda name: known[name]):
        packs.setdefault(scenario.partition(":")[0], {})[scenario] = known[scenario]
    return packs


def _growth(arms: Arms, pack: str, sizes: Mapping[str, int], model: str, plan: str, architecture: str) -> Growth | None:
    found = tuple(
        (tokens, arm)
        for scenario, tokens in sizes.items()
        if (arm := arms.get(Condition(scenario, model, plan), {}).get(architecture)) is not None and len(arm.usable)
    )
    return Growth(pack, model, plan, architecture, found, slope_of(found)) if len(found) > 1 else None


def slope_of(sizes: Sequence[tuple[int, Arm]]) -> Mean:
    """Over the repetitions that have all sizes; its interval is Student's over them."""
    xs = [tokens for tokens, _ in sizes]
    columns = [arm.by_repetition("retry_tokens") for _, arm in sizes]
    whole = sorted(set.intersection(*(set(column) for column in columns)))
    middle = sum(xs) / len(xs)
    weights = [(x - middle) / sum((other - middle) ** 2 for other in xs) for x in xs]
    return mean_of(
        sum(weight * column[repetition] for weight, column in zip(weights, columns, strict=True)) for repetition in whole
    )
