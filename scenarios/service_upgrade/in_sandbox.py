"""Run code that a model wrote in the sandbox: the tests of a tree, and calls of modules."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from bench.run.sandbox import Limits, run_python
from bench.scenario import Json

from .expected import UNKNOWN
from .repository import CONTRACT, FilesOf, library, module_text, pinned
from .story import Case, Module
from .written import asserts_of, mutants_of

LIMITS = Limits(wall_seconds=15.0, cpu_seconds=2)
PROGRAM = """
import importlib, os

def outcome(work, *given):
    try:
        return [True, work(*given)]
    except Exception as error:
        return [False, type(error).__name__]

def failing(job):
    os.environ = {"RUN": job["run"]}
    failed = []
    for name in job["tests"]:
        ok, module = outcome(importlib.import_module, name)
        tests = {test: work for test, work in vars(module).items() if test.startswith("test_")} if ok else {"import": None}
        failed += [f"{name}.{test}" for test, work in tests.items() if not (work and outcome(work)[0])]
    return failed

def answers(job):
    loaded = [outcome(importlib.import_module, name) for name in job["modules"]]
    def asked(module, rows, order):
        return outcome(module.answer, [dict(row) for row in rows], order)
    return [[asked(module, *call) if ok else [False, module] for call in job["calls"]] for ok, module in loaded]

def main(job):
    return {"failing": failing, "answers": answers}[job["what"]](job)
"""


def failing_tests(case: Case, files: FilesOf, seed: int) -> Iterator[str]:
    """Yield the names of the failing tests of a tree, in pytest's form."""
    flat = _flat(case, files)
    names = sorted(name.removesuffix(".py") for name in flat if name.startswith("test_"))
    ran = run_python(flat, PROGRAM, {"what": "failing", "tests": names, "run": str(seed)}, LIMITS)
    yield from map(str, ran.value) if ran.ok and isinstance(ran.value, list) else names


def failing_requests(case: Case, files: FilesOf, _: int) -> Iterator[str]:
    """Yield the requests whose answers have changed."""
    expected: Mapping[str, Json] = dict(json.loads(files[CONTRACT]))
    for module in case.modules:
        orders = [int(path.rpartition("/")[2]) for path in expected if path.startswith(f"/{module.name}/")]
        [given] = answers(case, [files[f"{module.name}.py"]], [(case.orders, order) for order in orders])
        for order, answer in zip(orders, given, strict=True):
            if answer != [True, expected[f"/{module.name}/{order}"]]:
                yield f"/{module.name}/{order}"


def _flat(case: Case, files: FilesOf) -> dict[str, str]:
    """Return the modules and tests of a tree, and the library version that it pins, as files of one folder."""
    version = next(number for number in (0, 1) if pinned(case, number) == files["requirements.txt"])
    kept = {path.removeprefix("tests/"): text for path, text in files.items() if path.endswith(".py") and path != "app.py"}
    return {**kept, f"{case.library}.py": library(case, version)}


def answers(case: Case, texts: Sequence[str], calls: Sequence[tuple[Any, Any]]) -> list[list[Json]]:
    """Return, for each text of a module under the next library, its result at each call (rows, order): whether it returned, and
    the answer or the name of the exception."""
    files = {f"m{number}.py": text for number, text in enumerate(texts)} | {f"{case.library}.py": library(case, 1)}
    asked = [[[dict(row) for row in rows], order] for rows, order in calls]
    job: Json = {"what": "answers", "modules": [f"m{number}" for number in range(len(texts))], "calls": asked}
    ran = run_python(files, PROGRAM, job, LIMITS)
    if ran.ok and isinstance(ran.value, list) and len(ran.value) == len(texts):
        return [list(each) if isinstance(each, list) else [None] * len(calls) for each in ran.value]
    return [[None] * len(calls) for _ in texts]


@lru_cache(maxsize=256)
def is_right_line(case: Case, module: Module, line: str) -> bool:
    """Return whether a module with this line answers as with the right line: on the orders of the tests, and on the orders of
    the production database, which no test uses."""
    calls = [(rows, order) for rows in (case.orders, case.production) for order in (*(row["id"] for row in rows), UNKNOWN)]
    written, right = answers(case, [module_text(case, module, each) for each in (line, module.right)], calls)
    return written == right


@lru_cache(maxsize=256)
def mutation_score(case: Case, test: str) -> tuple[int, int]:
    """Return how many mutants of the right module a test kills, and the number of mutants. A mutant that answers like the
    module on all orders does not count. A test that fails on the module itself kills nothing."""
    module, given = case.modules[0], asserts_of(test)
    right = module_text(case, module, module.right)
    texts = [ast.unparse(ast.parse(right)), *mutants_of(right), *(module_text(case, module, line) for line in module.wrong)]
    known = [(rows, order) for rows in (case.orders, case.production) for order in (*(row["id"] for row in rows), UNKNOWN)]
    calls = [*known, *((case.orders if each.rows is None else each.rows, each.order) for each in given)]
    [first, *others] = answers(case, texts, calls)
    mutants = [each for each in others if each[: len(known)] != first[: len(known)]]
    expected = [[True, each.expects] for each in given]
    if first[len(known) :] != expected:
        return 0, len(mutants)
    return sum(each[len(known) :] != expected for each in mutants), len(mutants)
