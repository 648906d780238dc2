"""A bank of repairs: how often a rejected judgment is right when it is asked again, by what the proposer was told.

The unit is a rejected reply, which is followed by one reply to each signal. Replies of one instance are alike, so intervals
cluster by instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Share, share_by_instance
from bench.read.render.cells import Rate
from bench.read.render.drawing import PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.marks import draw_value, signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.run.models.erring import ErringRepair, RepairSignal
from bench.worlds.run.simulated.bank import repairs

from ..by_model import by_model

SIGNALS: tuple[RepairSignal, ...] = get_args(RepairSignal)


@dataclass(frozen=True)
class Heard:
    """The replies of one model to one signal. `judgment` is "" for all judgments together."""

    scenario: str
    model: str
    judgment: str
    signal: RepairSignal
    accepted: Share
    right: Share


def replies(run: Run) -> list[Heard]:
    """Return the replies by scenario, model, judgment and signal. Raise ResultsError if the run asked nothing again, or was
    merged."""
    if run.folder is None:
        raise ResultsError("the repairs are read from one run; report it alone")
    groups: dict[tuple[str, str, str], list[ErringRepair]] = {}
    for model, repair in repairs(run.folder):
        for judgment in ("", repair.judgment):
            groups.setdefault((repair.scenario, model, judgment), []).append(repair)
    if not groups:
        raise ResultsError("no judgment was asked again after a rejection; it needs the architecture every_repair")
    return [
        _heard(place, signal, heard)
        for place, every in groups.items()
        for signal in SIGNALS
        if (heard := [repair for repair in every if repair.signal == signal])
    ]


def _heard(place: tuple[str, str, str], signal: RepairSignal, repairs: list[ErringRepair]) -> Heard:
    instances = [repair.instance for repair in repairs]
    accepted, right = ([getattr(repair, name) for repair in repairs] for name in ("is_accepted", "is_right"))
    return Heard(*place, signal, share_by_instance(instances, accepted), share_by_instance(instances, right))


# Tables and figures

NOTES = (
    "k of N replies to a judgment whose first reply was rejected; 95% intervals cluster by instance",
    "typed: the model is told why its reply was rejected; untyped: only that it was; completed: that all went well",
    "right: all of it, except what it only notes; an accepted reply can be wrong",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[Heard]("Scenario", lambda heard: heard.scenario),
        TableColumn[Heard]("Model", lambda heard: model_label(run, heard.model)),
        TableColumn[Heard]("Judgment", lambda heard: heard.judgment or "all"),
        TableColumn[Heard]("Told", lambda heard: heard.signal),
        TableColumn[Heard]("Accepted", lambda heard: Rate(heard.accepted)),
        TableColumn[Heard]("Right", lambda heard: Rate(heard.right)),
    )
    yield table_of("study-repair-bank", "Replies to a rejection", columns, replies(run), NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model, with a panel for each scenario."""
    for model, rows in by_model(run, replies(run)):
        scenarios = list(dict.fromkeys(heard.scenario for heard in rows))
        figure, axes = panels(len(scenarios), 3, 3.6, 2.8)
        sign = signs_of(SIGNALS)
        for scenario, ax in zip(scenarios, axes, strict=True):
            for heard in rows:
                if heard.scenario == scenario and not heard.judgment and heard.right.rate is not None:
                    draw_value(
                        ax,
                        SIGNALS.index(heard.signal),
                        (heard.right.rate, heard.right.low, heard.right.high),
                        sign[heard.signal],
                    )
            ax.set_xticks(range(len(SIGNALS)), SIGNALS)
            ax.set_xlim(-0.5, len(SIGNALS) - 0.5)
            ax.set_ylim(-0.02, 1.02)
            ax.set_ylabel("share of replies that are right")
            ax.set_title(scenario)
            ax.grid(axis="y", color=PALE, lw=0.6)
        title = f"What a rejected proposer says next, by what it is told, {model_label(run, model)}"
        caption = "Points are shares with their 95% intervals, which cluster by instance."
        yield finish(figure, slug("study", "repair-bank", model), title, f"{title}. {caption}")
