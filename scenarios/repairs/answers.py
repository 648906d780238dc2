"""The reference of an instance, and wrong answers: too few fixes, repairs in another place, the visible tests by heart."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from bench.scenario import Json, WrongAnswer

from .calls import seen
from .edits import whole_files
from .generate import Repair, repair
from .names import PATCH_ALONE, VISIBLE
from .running import ProgramTest

Edits = list[dict[str, str]]
TOLD = 4
"""Failures that a model is told of, where a patch is all that is asked."""


@dataclass(frozen=True)
class Made:
    documents: Mapping[str, str]
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    truth: Json
    secrets: tuple[str, ...]


def made_of(instance: str, variant: str = "repair") -> Made:
    """All of an instance that its name determines. In `patch` and `rewrite` a patch alone is asked; all tests verify it."""
    one = repair(instance)
    fixes = [_edit(one.path(bug.module), bug.wrong, bug.right) for bug in one.bugs]
    wrong = (*_too_few(fixes), *_elsewhere(one, fixes), _by_heart(one))
    form = _whole_files if variant == "rewrite" else _edits
    made = Made(
        documents={"failure.txt": _failure(one, one.shown, f" in {VISIBLE}"), VISIBLE: one.text_of(one.shown), **one.files},
        reference={"fix": form(one, fixes)},
        wrong=tuple(WrongAnswer(name, why, {"fix": form(one, edits)}) for name, why, edits in wrong),
        truth={"files": dict(one.files), "bugs": len(one.bugs), "tests": _as_truth(one.hidden)},
        secrets=tuple(bug.right for bug in one.bugs),
    )
    if variant in PATCH_ALONE:
        tests = sorted((*one.shown, *one.hidden), key=lambda test: len(test.call))
        documents = {"failure.txt": _failure(one, tests, most=TOLD), **one.files}
        return replace(made, documents=documents, truth={**made.truth, "tests": _as_truth(tests)})
    bugs = [
        {"file": one.path(bug.module), "line": bug.wrong, "cause": f"{bug.kind}; the line must be: {bug.right}"}
        for bug in one.bugs
    ]
    diagnosis, review = {"bugs": bugs}, {"problems": [], "approved": True}
    return replace(made, reference={"diagnosis": diagnosis, **made.reference, "review": review})


def _as_truth(tests: Sequence[ProgramTest]) -> Json:
    return [[test.name, test.call, test.value] for test in tests]


def _edits(_: Repair, edits: Edits) -> Json:
    return {"edits": edits}


def _whole_files(one: Repair, edits: Edits) -> Json:
    return whole_files(one.files, edits)


def _edit(file: str, find: str, replace: str) -> dict[str, str]:
    return {"file": file, "find": find, "replace": replace}


def _failure(one: Repair, tests: Sequence[ProgramTest], place: str = "", most: int | None = None) -> str:
    """What these tests say of the repository as it is: how many fail, and how: all of them, or the first `most`."""
    results = seen(dict(one.files), [test.call for test in tests])
    said = [failure for test, result in zip(tests, results, strict=True) if (failure := test.failure(result))]
    return "\n".join([f"{len(said)} of {len(tests)} tests{place} fail:", *said[:most]])


def _too_few(fixes: Sequence[dict[str, str]]) -> Iterator[tuple[str, str, Edits]]:
    """Each proper subset of the fixes."""
    for size in range(1, len(fixes)):
        for numbers in combinations(range(len(fixes)), size):
            named = "_".join(str(at + 1) for at in numbers)
            yield f"only_{named}", "It leaves a bug in, behind which nothing is right.", [fixes[at] for at in numbers]


def _elsewhere(one: Repair, fixes: Sequence[dict[str, str]]) -> Iterator[tuple[str, str, Edits]]:
    """For each bug a repair in the place where it shows, beside the fixes of the others, unless these touch its line."""
    for at, bug in enumerate(one.bugs):
        if bug.instead.find in [other.right for other in one.bugs]:
            continue
        repaired = _edit(one.path(bug.instead.module), bug.instead.find, bug.instead.replace)
        others = [fix for number, fix in enumerate(fixes) if number != at]
        why = f"It makes up for the bug in {bug.module}, in {bug.instead.module}, where it shows, and leaves it."
        yield f"around_{at + 1}", why, [*others, repaired]


def _by_heart(one: Repair) -> tuple[str, str, Edits]:
    """The functions that the visible tests call return what these tests want, for these arguments alone."""
    file = one.path(one.entry)
    definitions = [node for node in ast.parse(one.files[file]).body if isinstance(node, ast.FunctionDef)]
    edits = []
    for function in definitions:
        known = [test for test in one.shown if test.call.startswith(f"{one.entry}.{function.name}(")]
        if known:
            parameters = ", ".join(each.arg for each in function.args.args)
            head = f"def {function.name}({parameters}):"
            edits.append(_edit(file, head, "\n".join([head, *(_answer(test, parameters) for test in known)])))
    return "by_heart", "It returns what the visible tests want for their arguments, and what it did for all others.", edits


def _answer(test: ProgramTest, parameters: str) -> str:
    call = ast.parse(test.call, mode="eval").body
    assert isinstance(call, ast.Call)
    arguments = ", ".join(map(ast.unparse, call.args))
    return f"    if ({parameters},) == ({arguments},):\n        return {test.value!r}"
