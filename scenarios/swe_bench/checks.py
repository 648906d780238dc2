"""The pack's verifier: the patch applies to the shown files, and the result is valid Python. It runs no test."""

from __future__ import annotations

from bench.run.sandbox.syntax import unparsable
from bench.scenario import Context

from .patches import Unfit, patched
from .schemas import Diagnosis, Patch

PROBLEM = "problem.txt"


def file_is_shown(output: Diagnosis, context: Context) -> str | None:
    shown = [name for name in context.documents if name != PROBLEM]
    return None if output.file in shown else f"there is no file {output.file[:100]}; the files are {', '.join(shown)}"


def patch_applies(output: Patch, context: Context) -> str | None:
    files = {name: text for name, text in context.documents.items() if name != PROBLEM}
    try:
        changed = patched(files, output.patch)
    except Unfit as unfit:
        return str(unfit)
    if changed == files:
        return "the patch changes nothing"
    for name, text in changed.items():
        if name.endswith(".py") and (problem := unparsable(text)):
            return f"{name} is no valid Python after the patch: {problem}"
    return None
