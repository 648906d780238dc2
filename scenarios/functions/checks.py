"""The pack's verifier: it runs the visible examples on the code, and not the hidden tests."""

from __future__ import annotations

from bench.run.sandbox.cases import run_cases
from bench.scenario import Context

from .schemas import Function
from .written import cases_of


def it_returns_what_the_examples_show(output: Function, context: Context) -> str | None:
    """Return the first example that the code fails, and how; None if it passes all."""
    shown = cases_of(context.documents["examples.txt"])
    outcomes = run_cases(output.code, shown.function, shown.cases)
    return next((f"{one.kind}: {one.words}" for one in outcomes if one.kind != "right"), None)
