"""Retesting: what it costs a coding agent to test again what it knew, and to believe results that no longer hold.

Five arms repair the same generated repositories, patch by patch, with the same simulated proposer. They differ in which test
results they still believe after a patch. The tests are real code, run in the sandbox; the proposer is a random draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from bench.common.errors import ResultsError
from bench.common.wording import first_violation
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import amount_of, share_of
from bench.read.render.cells import Estimate, Rate
from bench.read.render.drawing import PALE, Picture, finish, panels
from bench.read.render.table import Table, TableColumn, table_of

from .patch_loop.columns import COSTS, OUTCOMES, WRONG_BELIEFS, ArmResults, arm_results
from .patch_loop.results import LOOPS, LoopResult

REFERENCE = "rerun_everything"


def retested(run: Run) -> Mapping[str, Mapping[str, Sequence[LoopResult]]]:
    """Return the result of each case by disruption and arm, from the run's manifest.

    Raises ResultsError if the manifest has none.
    """
    try:
        kept = LOOPS.validate_python(run.manifest.prepared.get("retesting", {}))
    except ValidationError as error:
        raise ResultsError(f"its manifest holds no results of the arms: {first_violation(error).line}; restore it") from error
    if not kept:
        raise ResultsError("needs the arms' results in its manifest; run it again with a config whose study is retesting")
    return kept


# Tables and figures

SIMULATED = "SIMULATED proposer"
NOTES = (
    "the proposer is simulated: a quarter of its patches break a line that was right. The tests are code, run in the sandbox",
    "a case is a repository; means have their 95% interval over cases, shares Wilson's. Wrong: handed in while a test fails",
    "wrong beliefs: of all kept passes that were believed, those of tests which would have failed; several stand in one "
    "case, so that the interval is told of cases alone",
    "seconds are simulated: 1 s a test, 2,000 tokens/s read, 50 tokens/s written. Executions saved: rerun_everything less this "
    "arm on the same cases; a negative number is what the arm ran more",
)


def tables(run: Run) -> Iterator[Table]:
    arms = arm_results(retested(run), REFERENCE)
    title = f"Retesting: what is believed after a patch, and what it costs ({SIMULATED})"
    yield table_of("study-retesting", title, COLUMNS, arms, NOTES)


COLUMNS = (
    TableColumn[ArmResults[LoopResult]]("Disruption", lambda arm: arm.under),
    TableColumn[ArmResults[LoopResult]]("Arm", lambda arm: arm.arm),
    TableColumn[ArmResults[LoopResult]]("Cases struck", lambda arm: sum(case.struck for case in arm.cases)),
    *OUTCOMES,
    *COSTS,
    TableColumn[ArmResults[LoopResult]]("Seconds", lambda arm: Estimate(amount_of([case.seconds for case in arm.cases]), 1)),
    TableColumn[ArmResults[LoopResult]](
        "Cases with a wrong belief", lambda arm: Rate(share_of(sum(case.wrong > 0 for case in arm.cases), len(arm.cases)))
    ),
    WRONG_BELIEFS,
)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure with a panel for each disruption: executions across, share solved up, a point for each arm."""
    kept = retested(run)
    figure, axes = panels(len(kept), 3, 3.6, 3.0)
    undisturbed: dict[str, str] = {}
    means = [amount_of([result.executions for result in results]).mean for arms in kept.values() for results in arms.values()]
    most = max(mean or 0.0 for mean in means)
    for (disruption, arms), ax in zip(kept.items(), axes, strict=True):
        for place, (arm, results) in enumerate(arms.items()):
            solved = share_of(sum(result.outcome == "solved" for result in results), len(results))
            executions = amount_of([result.executions for result in results])
            if executions.mean is None or solved.rate is None or solved.low is None or solved.high is None:
                continue
            if disruption == "none":
                undisturbed[arm] = f"{executions.mean:.1f} tests a case and solved {solved.k} of {solved.n}"
            colour, marker = f"C{place}", "os^Dv"[place % 5]
            # regenerate runs the same tests as rerun_everything, so the two points coincide
            hollow: dict[str, Any] = {"markersize": 11, "markerfacecolor": "none"} if arm == "regenerate" else {}
            ax.plot(executions.mean, solved.rate, marker=marker, color=colour, linestyle="", label=arm, **hollow)
            ax.vlines([executions.mean], [solved.low], [solved.high], color=colour, lw=0.8)
        ax.set_title(f"{disruption.replace('_', ' ')}, N={len(next(iter(arms.values())))}")
        ax.set_xlabel("tests run a case, mean")
        ax.set_ylabel("share of cases solved")
        ax.set_xlim(-2, 1.1 * most)
        ax.set_ylim(-0.05, 1.08)
        ax.grid(color=PALE, lw=0.6)
    axes[0].legend(fontsize=7)
    finding = "; ".join(f"{arm} ran {undisturbed[arm]}" for arm in ("selective", REFERENCE) if arm in undisturbed)
    title = f"Undisturbed, {finding} ({SIMULATED})"
    yield finish(figure, "study-retesting", title, f"{title}. Bars are Wilson's 95% intervals over cases.")
