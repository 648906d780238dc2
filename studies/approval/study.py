"""What approval buys: the damage that asking a person before an effect prevents, and its cost, by kind of reviewer.

A variant that asks is compared with the variant that differs only in asking nobody, on the same instance. An effect that needs
a person and was made without one is damage by definition, right or wrong. Any yes removes that damage, so it is shown apart.
All people are simulated: no reviewer reads what the gate shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.render.drawing import GREY, PALE, Picture, finish, legend_of_points, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.marks import Sign, signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import BootstrapMean
from bench.record.config import FAULT_FREE
from bench.record.damage import DAMAGES

from ..by_model import by_model
from ..rises import main_effect
from ..variants import differing_in

CAREFUL = "careful"
"""The reviewer of the plan without a fault."""
PAIRS = ["instance", "repetition", "architecture"]
PATIENCE = "waiting_for_people_minutes"


@dataclass(frozen=True)
class Purchase:
    """A variant that asks people of one kind, compared with the variant that asks nobody. All are means of a trial over
    instances.

    prevented      damaged effects that it has less
    unapproved     of these, effects against the policy, or without the person that they needed
    solved         share of trials that it solves more
    minutes        of world time in which it waited for people
    tokens, calls  of the model, that it took more
    """

    scenario: str
    model: str
    asking: str
    reviewer: str
    prevented: BootstrapMean
    unapproved: BootstrapMean
    solved: BootstrapMean
    minutes: BootstrapMean
    tokens: BootstrapMean
    calls: BootstrapMean


def purchases(run: Run) -> list[Purchase]:
    """Return the purchases by scenario, model, asking variant and kind of reviewer. Reviewers who were asked nothing are left
    out.

    Raises ResultsError if no two variants of the run differ only in asking nobody, or the run has no plan without a fault.
    """
    asking = differing_in(run, "approval", lambda approval: approval not in (None, "never"), "never")
    plans = run.names("plan")
    if not asking or FAULT_FREE not in plans:
        raise ResultsError(
            f"needs the plan '{FAULT_FREE}', and two variants that differ in `approval` alone, one with \"never\""
        )
    trials = run.trials[~run.trials["outcome"].isin(UNUSABLE) & run.trials["lives"].notna()]
    trials = trials.assign(
        damage=trials[[f"damage_{kind}" for kind in DAMAGES]].sum(axis=1).astype(float),
        solved=trials["outcome"].eq("solved").astype(float),
    )
    bought: list[Purchase] = []
    for (scenario, model), group in trials.groupby(["scenario", "model"], sort=False, observed=True):
        for name, silent in asking.items():
            for plan in plans:
                with_people = group[(group["architecture"] == name) & (group["plan"] == plan)]
                if not with_people[PATIENCE].any():
                    continue
                without = group[(group["architecture"] == silent) & (group["plan"] == FAULT_FREE)]
                both = pd.concat([without, with_people])
                less = partial(main_effect, both, part="architecture", level=silent, reference=name, pairs=PAIRS)
                more = partial(main_effect, both, part="architecture", level=name, reference=silent, pairs=PAIRS)
                bought.append(
                    Purchase(
                        scenario=str(scenario),
                        model=str(model),
                        asking=name,
                        reviewer=CAREFUL if plan == FAULT_FREE else plan.replace("_", " "),
                        prevented=less(outcome="damage"),
                        unapproved=less(outcome="damage_unauthorised"),
                        solved=more(outcome="solved"),
                        minutes=more(outcome=PATIENCE),
                        tokens=more(outcome="tokens"),
                        calls=more(outcome="calls"),
                    )
                )
    return bought


# Tables and figures

NOTES = (
    "less damage: damaged effects of a trial with nobody asked, less those with people asked",
    "of it unapproved: effects without the person that they needed, or against the policy; any yes takes the first away, by "
    "definition",
    "more solved: share of trials; tokens and calls: of the model; minutes: of world time in which a person was waited for",
    "means over instances with 95% intervals of resampled instances; where all instances differ by the same there is none",
    "reviewers are simulated and read nothing; reviewers who were asked nothing have no row",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[Purchase]("Scenario", lambda bought: bought.scenario),
        TableColumn[Purchase]("Model", lambda bought: model_label(run, bought.model)),
        TableColumn[Purchase]("Asks", lambda bought: bought.asking),
        TableColumn[Purchase]("Reviewer", lambda bought: bought.reviewer),
        TableColumn[Purchase]("Less damage", lambda bought: bought.prevented.cell()),
        TableColumn[Purchase]("Of it unapproved", lambda bought: bought.unapproved.cell()),
        TableColumn[Purchase]("More solved", lambda bought: bought.solved.cell()),
        TableColumn[Purchase]("Minutes waited", lambda bought: bought.minutes.cell(0)),
        TableColumn[Purchase]("Tokens more", lambda bought: bought.tokens.cell(0)),
        TableColumn[Purchase]("Calls more", lambda bought: bought.calls.cell()),
        TableColumn[Purchase]("Instances", lambda bought: bought.prevented.instances),
    )
    yield table_of("study-approval", "What approval buys", columns, purchases(run), NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model, with a panel for each scenario."""
    for model, of_model in by_model(run, purchases(run)):
        scenarios = list(dict.fromkeys(each.scenario for each in of_model))
        signs = signs_of(list(dict.fromkeys(each.asking for each in of_model)))
        figure, axes = panels(len(scenarios), 3, 3.9, 2.6)
        for scenario, ax in zip(scenarios, axes, strict=True):
            _panel(ax, scenario, [each for each in of_model if each.scenario == scenario], signs)
        legend_of_points(figure, signs)
        title = f"What approval buys: damage that it prevents, by kind of reviewer, {model_label(run, model)}"
        caption = (
            "Damaged effects of a trial that asks nobody, less those of a trial that asks. 95% intervals cluster by instance."
        )
        yield finish(figure, slug("study", "approval", model), title, f"{title}. {caption}")


def _panel(ax: Axes, scenario: str, shown: Sequence[Purchase], signs: dict[str, Sign]) -> None:
    reviewers = list(dict.fromkeys(each.reviewer for each in shown))
    for each in shown:
        value, low, high = each.prevented.value, each.prevented.low, each.prevented.high
        if value is not None:
            marker, colour = signs[each.asking]
            errors = None if low is None or high is None else [[value - low], [high - value]]
            place = reviewers.index(each.reviewer) + 0.24 * (list(signs).index(each.asking) - (len(signs) - 1) / 2)
            ax.errorbar([value], [place], xerr=errors, fmt=marker, ms=4.5, color=colour, capsize=3, lw=1)
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(range(len(reviewers)), reviewers)
    ax.invert_yaxis()
    ax.set_title(scenario)
    ax.set_xlabel("damaged effects less, with people asked")
    ax.grid(axis="x", color=PALE, lw=0.6)
