"""Weaknesses planted in a careful agent by edits of its code, each in one of its five parts, or in two.

The agent is the state machine with its remedies. Its package is copied under another name, and the copy is edited; what mends
it is the package as it stands.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import bench.worlds.run.patterns
from bench.record.form import Form
from bench.rerun.mended_parts import MendedPart
from bench.rerun.mends import RerunAgent, with_remedies
from bench.run.answers.exchanged import exchange
from bench.run.models.base import Request
from bench.run.models.simulated import SimulatedModel
from bench.scenario import Json, Scenario
from bench.worlds.run.patterns.state_machine import state_machine

PACKAGE = "bench.worlds.run.patterns"
FORM = Form(remedies=True)


@dataclass(frozen=True)
class Edit:
    """An edit of the package: in `file`, `old`, which is there once, becomes `new`."""

    part: MendedPart
    file: str
    old: str
    new: str


class Mistaken(SimulatedModel):
    """A model that exchanges a value of its first answer to each judgment."""

    def _output(self, scenario: Scenario, name: str, request: Request, draw: Random) -> Json | str:
        right = super()._output(scenario, name, request, draw)
        if request.context.attempt > 1 or not isinstance(right, dict):
            return right
        return exchange(right, scenario.task.subtask(name).output, draw) or right


BOUNDARY, CALLING, GATE = "boundary.py", "calling.py", "gate.py"
RULES = Edit(
    "verifier",
    BOUNDARY,
    'self._form.holds("business_rule" if rejected.reason in CONTENT else "schema")',
    "rejected.reason not in CONTENT",
)
ONE_RULE = Edit(
    "verifier", BOUNDARY, "if rejected and (value is None or ", 'if rejected and (value is None or name != "offer" and '
)
KEY = Edit("commit", BOUNDARY, "return effect.key if self._form.keys else None", "return None")
VERSIONS = Edit("commit", BOUNDARY, "return effect.versions if self._form.compares else None", "return None")
SWALLOWED = Edit(
    "signal", BOUNDARY, 'if self._tells == "as_success":\n            return None', "if rejected:\n            return None"
)
UNTOLD = Edit("signal", BOUNDARY, 'return "" if self._tells == "as_success" else why', 'return ""')
GATE_OPEN = Edit("pattern", GATE, 'if gate == "stamps" or (verdict.allows and gate != "asks_of_all"):', "if True:")
ONE_TRY = Edit("pattern", CALLING, "LASTING_TRIES = 8", "LASTING_TRIES = 1")
MISTAKEN = "a model that exchanges a value of its first answers"
Plant = Edit | str
SINGLE: dict[str, tuple[Plant, ...]] = {
    "the pack's rules are not held against a proposal": (RULES,),
    "one judgment's rules are not held": (ONE_RULE,),
    "the key of an effect is dropped": (KEY,),
    "an effect does not say on which versions it was decided": (VERSIONS,),
    "a rejection is swallowed": (SWALLOWED,),
    "that a step came to nothing is swallowed": (UNTOLD,),
    "no person is asked where the policy wants one": (GATE_OPEN,),
    "a call that fails is not tried again": (ONE_TRY,),
}
DOUBLE: dict[str, tuple[Plant, ...]] = {
    "no key, and nobody is asked": (KEY, GATE_OPEN),
    "no key, and a rejection is swallowed": (KEY, SWALLOWED),
    "a mistaken model, and no rules are held": (MISTAKEN, RULES),
    "no key, and no rules are held": (KEY, RULES),
}
UNHEARD = Edit("signal", BOUNDARY, 'return rejected if self._tells == "typed" else replace', "return replace")
HARMLESS: dict[str, tuple[Plant, ...]] = {"no key; and a model that would not listen is given no reason": (KEY, UNHEARD)}


def parts_of(plants: Sequence[Plant]) -> frozenset[MendedPart]:
    return frozenset("proposer" if isinstance(plant, str) else plant.part for plant in plants)


@functools.cache
def agent_with(plants: tuple[Plant, ...]) -> RerunAgent:
    """Return the agent whose code has these edits."""
    edits = [plant for plant in plants if isinstance(plant, Edit)]
    name = f"edited_{abs(hash(plants)):x}"
    folder = Path(mkdtemp())
    for source in Path(bench.worlds.run.patterns.__path__[0]).rglob("*.py"):
        path = source.relative_to(bench.worlds.run.patterns.__path__[0])
        text = source.read_text(encoding="utf-8").replace(PACKAGE, name)
        for edit in edits:
            if edit.file == str(path):
                if text.count(edit.old) != 1:
                    raise ValueError(f"{path}: '{edit.old}' stands there {text.count(edit.old)} times")
                text = text.replace(edit.old, edit.new)
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        machine: Any = importlib.import_module(f"{name}.state_machine")
        boundary: Any = importlib.import_module(f"{name}.boundary")
    finally:
        sys.path.remove(str(folder))
    return RerunAgent(
        functools.partial(machine.state_machine, form=FORM),
        lambda workbench: boundary.Boundary.of(workbench, FORM),
        functools.partial(state_machine, form=with_remedies(FORM)),
    )
