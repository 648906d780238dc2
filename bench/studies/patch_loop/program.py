"""Runs in the sandbox: imports a repository that is given as texts, and says of each call what it returned and what it ran.

It imports nothing but Python's own library. The modules come in an order in which each imports earlier ones alone, and each
function of theirs begins with a call of `ran_` with its name.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any


def main(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return of each call its `value`, or none where it raised, and the functions that `ran`."""
    ran: list[str] = []
    space: dict[str, Any] = {}
    for dotted, text in job["modules"]:
        package, _, name = dotted.rpartition(".")
        parent = sys.modules.setdefault(package, ModuleType(package))
        module = sys.modules[dotted] = ModuleType(dotted)
        vars(module)["ran_"] = ran.append
        setattr(parent, name, module)
        space[name] = module
        try:
            exec(compile(text, dotted, "exec", dont_inherit=True), vars(module))
        except Exception:
            return [{"ran": []} for _ in job["calls"]]
    return [_called(call, space, ran) for call in job["calls"]]


def _called(call: str, space: dict[str, Any], ran: list[str]) -> dict[str, Any]:
    ran.clear()
    try:
        value = json.loads(json.dumps(eval(call, space)))
    except Exception:
        return {"ran": sorted(set(ran))}
    return {"value": value, "ran": sorted(set(ran))}
