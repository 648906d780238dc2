"""How models and arms are called wherever numbers of theirs are shown: a simulated one is marked, always."""

from __future__ import annotations

import re

from bench.analysis.arms import Condition
from bench.analysis.frames import Run


def is_simulated(run: Run, model: str) -> bool:
    return bool(run.trials.loc[run.trials["model"] == model, "timing"].eq("simulated").any())


def model_label(run: Run, model: str) -> str:
    return f"{model} (SIMULATED)" if is_simulated(run, model) else model


def condition_label(run: Run, condition: Condition) -> str:
    return f"{condition.scenario}, {model_label(run, condition.model)}, fault plan {condition.plan}"


def slug(*names: str) -> str:
    """A file name out of names; others than letters, digits, dots, underscores and dashes become dashes."""
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "x" for name in names)
