"""Pattern × failure: which failure damages which pattern, bare and with its author's remedies?

The unit is a pair: a trial under one failure, and the same trial without it. A weakness is *shown bare* if the failure damages
a bare trial more than its control, and *mended by its remedy* if it does so in no trial with remedies. Two patterns with the
same damage in every pair are *not told apart* by any failure here. With remedies these are the same parts at work: their trials
are copies of one another, and stand in one column. Whether a verdict may rest on its pairs is asked of
`bench.read.analysis.factors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.factors import ArmName, VerdictEvidence, factors_between, reason_against_verdict
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Share, exact_share_by_instance
from bench.read.render.drawing import BLACK, PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table
from bench.record.config import FAULT_FREE
from bench.worlds.read.beyond_control import DAMAGE_COLUMNS, beyond_control

from ..by_model import by_model
from ..variants import with_remedies
from .pattern_behaviour import tables_of_behaviour

BEYOND = [f"beyond_{column.removeprefix('damage_')}" for column in DAMAGE_COLUMNS]
MENDED, SHOWN, ONLY_REMEDIED, WITHSTOOD, NOT_PROVOKED, TOO_FEW = (
    *("mended by its remedy", "shown bare, not mended"),
    *("shown with remedies alone", "withstood", "not provoked", "too few to say"),
)
DARK = 0.6
"""Share above which a cell is too dark for black digits."""


@dataclass(frozen=True)
class Weakness:
    """One pattern under one failure.

    bare, remedied   of the pairs in which the failure was delivered, the share with more damage than the control
    refused          why no damage bare, and why no damage with remedies, shows nothing; "" where it does
    """

    scenario: str
    model: str
    failure: str
    pattern: str
    bare: Share
    remedied: Share
    refused: tuple[str, str] = ("", "")

    @property
    def verdict(self) -> str:
        if not self.bare.n:
            return NOT_PROVOKED
        if self.bare.k:
            return SHOWN if self.remedied.k or self.refused[1] else MENDED
        if self.remedied.k:
            return ONLY_REMEDIED
        return TOO_FEW if self.refused[0] else WITHSTOOD


def weaknesses(run: Run) -> list[Weakness]:
    """Return the weaknesses by scenario, model, failure and pattern, in the config's order.

    Raises ResultsError if the run has no failure, no control, or no pattern both bare and with remedies.
    """
    forms = with_remedies(run)
    failures = [plan for plan in run.names("plan") if plan != FAULT_FREE]
    if not failures or FAULT_FREE not in run.names("plan") or not forms:
        raise ResultsError(f"needs fault plans, the plan '{FAULT_FREE}' beside them, and patterns bare and with remedies")
    judged: list[Weakness] = []
    for (scenario, model), group in _pairs(run).groupby(["scenario", "model"], sort=False, observed=True):
        for failure in failures:
            for pattern, remedied in forms.items():
                bare_arm, arm = (ArmName(name, str(model), failure) for name in (pattern, remedied))
                by_plan = factors_between(run, bare_arm, bare_arm._replace(plan=FAULT_FREE))
                bare, reason = _judged(group, bare_arm, by_plan, "plan")
                mended, other_reason = _judged(group, arm, factors_between(run, bare_arm, arm))
                judged.append(Weakness(str(scenario), str(model), failure, pattern, bare, mended, (reason, other_reason)))
    return judged


def not_told_apart(run: Run) -> dict[str, list[list[str]]]:
    """Return form (`bare`, `with remedies`) -> groups of two patterns or more with the same damage in every pair of the run."""
    forms = with_remedies(run)
    alike = {"bare": _alike(run, forms), "with remedies": _alike(run, dict.fromkeys(forms.values()))}
    return {form: [group for group in groups if len(group) > 1] for form, groups in alike.items()}


def _alike(run: Run, names: Iterable[str]) -> list[list[str]]:
    """Return the patterns in groups with the same damage in every pair of the run."""
    places = ["scenario", "model", "plan", "instance", "repetition"]
    pairs, alike = _pairs(run), dict[str, list[str]]()
    for name in names:
        of_pattern = pairs[pairs["architecture"] == name].sort_values(places)
        alike.setdefault(of_pattern[[*places, *BEYOND]].to_csv(index=False), []).append(name)
    return list(alike.values())


def _pairs(run: Run) -> pd.DataFrame:
    pairs = beyond_control(run, DAMAGE_COLUMNS)
    return pairs.assign(is_damaged=pairs[BEYOND].clip(lower=0).sum(axis=1) > 0, is_struck=pairs["faults_delivered"] > 0)


def _judged(pairs: pd.DataFrame, arm: ArmName, factors: tuple[str, ...], named: str | None = None) -> tuple[Share, str]:
    """Return the share of an arm's struck pairs with more damage, and why its having none would show nothing."""
    of_arm = pairs[(pairs["plan"] == arm.plan) & (pairs["architecture"] == arm.architecture)]
    struck_pairs = of_arm[of_arm["is_struck"]]
    instances = struck_pairs["instance"].astype(str).tolist()
    evidence = VerdictEvidence(factors, len(of_arm), len(struck_pairs), len(set(instances)))
    return exact_share_by_instance(instances, struck_pairs["is_damaged"].tolist()), reason_against_verdict(evidence, named)


# Tables and figures

NOTES = (
    "k/N of the pairs in which the failure was delivered have more damage than the same trial without it: under each pattern's "
    "name bare, and in the last columns with the author's remedies",
    "with remedies: patterns with the same damage in every pair of the run are one column, since their trials are copies",
    "mended: some bare and none with remedies; shown: some in both; withstood: none bare; remedies alone: none bare and some "
    "with remedies; not provoked: the failure was delivered in no trial; too few to say: none, but in trials of one instance",
    "of none of 10 instances the exact 95% interval ends at 31%, of none of 8 at 37%, of none of 4 at 60%",
)


def tables(run: Run) -> Iterator[Table]:
    every, forms = weaknesses(run), with_remedies(run)
    patterns, groups = list(forms), _alike(run, dict.fromkeys(forms.values()))
    rows: dict[tuple[str, ...], list[Weakness]] = {}
    for weakness in every:
        place = (weakness.scenario, model_label(run, weakness.model), weakness.failure.replace("_", " "))
        rows.setdefault(place, []).append(weakness)
    yield Table(
        name=_file_name(run),
        title="Pattern × failure",
        columns=(
            *("Scenario", "Model", "Failure", *(pattern.replace("_", " ") for pattern in patterns)),
            *(_of_group([name for name in patterns if forms[name] in group], patterns) for group in groups),
        ),
        rows=tuple(
            (
                *place,
                *map(_cell, cells),
                *(_with_remedies([each for each in cells if forms[each.pattern] in group]) for group in groups),
            )
            for place, cells in rows.items()
        ),
        notes=(*NOTES, *_in_more(run)),
    )
    simulated = " (SIMULATED)" if all(run.is_simulated(model) for model in run.names("model")) else ""
    apart = [(form, ", ".join(group)) for form, alike in not_told_apart(run).items() for group in alike]
    yield Table(
        name=_file_name(run, "alike"),
        title=f"Patterns that no failure here tells apart{simulated}",
        columns=("Form", "Patterns"),
        rows=tuple(apart) or (("any", "none"),),
        notes=("their damage beyond the control is the same, kind by kind, in every pair of the run",),
    )
    yield from tables_of_behaviour(run, partial(_file_name, run))


def _in_more(run: Run) -> Iterator[str]:
    """Say in what the forms with remedies differ from the bare ones beside `remedies`, which their verdicts name alone."""
    model = run.names("model")[0]
    arms = [(ArmName(bare, model, FAULT_FREE), ArmName(form, model, FAULT_FREE)) for bare, form in with_remedies(run).items()]
    more = {factor for pair in arms for factor in factors_between(run, *pair)} - {"remedies"}
    if more:
        yield f"with remedies: forms differ in {' and '.join(sorted(more))} as well, so what is mended may be by these"


def _file_name(run: Run, *more: str) -> str:
    """Return a name with the config's name in it: runs of several configs share a report."""
    return slug("study", *run.config.name.split("_"), *more)


def _cell(weakness: Weakness) -> str:
    if weakness.verdict == NOT_PROVOKED:
        return NOT_PROVOKED
    words = {MENDED: "mended", SHOWN: "shown", ONLY_REMEDIED: "remedies alone"}
    word = words.get(weakness.verdict, weakness.verdict)
    return f"{word}, {weakness.bare.k}/{weakness.bare.n}"


def _with_remedies(of_group: Sequence[Weakness]) -> str:
    """Return the share with remedies of patterns that are not told apart; several if the failure struck them unlike."""
    struck = dict.fromkeys(f"{each.remedied.k}/{each.remedied.n}" for each in of_group if each.remedied.n)
    return " or ".join(struck) or NOT_PROVOKED


def _of_group(group: Sequence[str], patterns: Sequence[str]) -> str:
    if len(group) == len(patterns) > 1:
        return f"all {len(group)} with remedies"
    return f"{', '.join(name.replace('_', ' ') for name in group)} with remedies"


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: a panel for each scenario and form."""
    for model, of_model in by_model(run, weaknesses(run)):
        scenarios = list(dict.fromkeys(weakness.scenario for weakness in of_model))
        failures = list(dict.fromkeys(weakness.failure for weakness in of_model))
        figure, axes = panels(2 * len(scenarios), 2, 5.4, 1.9 + 0.24 * len(failures))
        for number, ax in enumerate(axes):
            form = ("bare", "remedied")[number % 2]
            _panel(
                ax,
                [weakness for weakness in of_model if weakness.scenario == scenarios[number // 2]],
                form,
                scenarios[number // 2],
            )
        title = f"Which failure damages which pattern, bare and with remedies, {model_label(run, model)}"
        caption = "Each cell is the share of pairs with more damage than without the failure. An empty cell has no failure."
        yield finish(figure, _file_name(run, model), title, f"{title}. {caption}")


def _panel(ax: Axes, shown: Sequence[Weakness], form: str, scenario: str) -> None:
    failures, patterns = (list(dict.fromkeys(getattr(weakness, name) for weakness in shown)) for name in ("failure", "pattern"))
    shares: Mapping[tuple[str, str], Share] = {
        (weakness.failure, weakness.pattern): getattr(weakness, form) for weakness in shown
    }
    rates = [[shares[failure, pattern].rate for pattern in patterns] for failure in failures]
    ax.imshow([[float("nan") if rate is None else rate for rate in row] for row in rates], cmap="Oranges", vmin=0, vmax=1)
    for y, row in enumerate(rates):
        for x, rate in enumerate(row):
            if rate:
                colour = "white" if rate > DARK else BLACK
                ax.text(x, y, f"{100 * rate:.0f}", ha="center", va="center", fontsize=6, color=colour)
    ax.set_xticks(
        range(len(patterns)), [pattern.replace("_", " ") for pattern in patterns], rotation=40, ha="right", fontsize=6.5
    )
    ax.set_yticks(range(len(failures)), [failure.replace("_", " ") for failure in failures], fontsize=7)
    ax.set_title(f"{scenario}: {'bare' if form == 'bare' else 'with remedies'}, % of pairs", fontsize=8)
    ax.tick_params(color=PALE)
