"""The pack's verifier: it runs the examples in the prompt. It has no hidden test."""

from __future__ import annotations

from functools import lru_cache

from bench.common.errors import one_line
from bench.scenario import Context

from .examples import Example, examples_of
from .problems import entry_point_of, given_of
from .sandboxed import LONGEST, Failed, Ran, are_equal, run_answer
from .schemas import Function, Review


def examples_hold(output: Function, context: Context) -> str | None:
    """Return what is wrong with the code by the prompt's examples; None if nothing is. If the prompt has no readable example,
    the code must at least define the function."""
    return objection(output.code, context.documents["problem.py"])


@lru_cache(maxsize=256)
def objection(code: str, prompt: str) -> str | None:
    function = entry_point_of(prompt)
    examples = examples_of(prompt, function)
    ran = run_answer(code, given_of(prompt), function, [one.call for one in examples])
    return f"{ran.failure}: {ran.detail}" if isinstance(ran, Failed) else _first_unmet(examples, ran)


def _first_unmet(examples: tuple[Example, ...], ran: Ran) -> str | None:
    called = list(zip(examples, ran.returned, strict=False))
    met = are_equal([(returned, example.expected) for example, returned in called])
    for (example, returned), is_met in zip(called, met, strict=True):
        if not is_met:
            return f"{example.call} returned {one_line(returned, LONGEST)}, expected {example.expected}"
    if len(ran.returned) < len(examples):
        return f"{examples[len(ran.returned)].call} raised {ran.raised}"
    return None


def problem_is_named(output: Review, _: Context) -> str | None:
    if not output.is_right and not output.problem.strip():
        return "is_right is false, but no problem is named"
    return None
