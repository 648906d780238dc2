"""The arms of `retesting` follow the patches of a recorded model when a run begins."""

from __future__ import annotations

from typing import Any

from bench.common.errors import Unguarded
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.untrusted import missing_guards, refusal

from ..retesting.patch_loop.recorded import recorded_cases
from ..retesting.patch_loop.results import PATCHED, PatchedCase


def prepare(matrix: Matrix) -> dict[str, Any]:
    """Follow all arms over the patches of the replayed run, when a run begins. A live model has none.

    Raises Unguarded if a guard of the sandbox is missing.
    """
    entries = {name: matrix.config.model.get(name) for name in matrix.config.models}
    folders = {name: entry.replays for name, entry in entries.items() if entry and entry.replays}
    if folders and (lacking := missing_guards()):
        raise Unguarded(refusal("repairs:patch", lacking))
    cases: dict[str, dict[str, list[PatchedCase]]] = {}
    for name, folder in folders.items():
        for form, arm, results in recorded_cases(folder, matrix.scenarios, matrix.config.format_of(name)):
            cases.setdefault(form, {}).setdefault(arm, []).extend(results)
    return {"patching": PATCHED.dump_python(cases, mode="json")} if cases else {}
