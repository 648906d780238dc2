"""Packages as a user writes them, each with an edit of its code: a weakness, or a harmless edit beside a weakness.

A package is one of two. The `copy` is the suite's state machine and its parts, copied under another name. The `clerk` has a
boundary and a loop that are not ours (`clerk.py`). Both are careful before an edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import bench.worlds.run.patterns
from bench.rerun.mended_parts import MendedPart

PACKAGE = "bench.worlds.run.patterns"
PATTERNS = Path(bench.worlds.run.patterns.__path__[0])
CLERK_FILE = Path(__file__).parent / "clerk.py"
COPIED = '''"""The state machine, copied."""

from bench.record.form import Form
from {package}.state_machine import state_machine


async def careful(task, workbench, form=Form(remedies=True)):
    await state_machine(task, workbench, form=form)
'''
Base = Literal["copy", "clerk"]
BOUNDARY, GATE, CALLING, RUNNER = "boundary.py", "gate.py", "calling.py", "procedure_runner.py"
AGENT = "agent.py"


@dataclass(frozen=True)
class Edit:
    """An edit of a package: in `file`, `old`, which is there once, becomes `new`."""

    base: Base
    part: MendedPart
    file: str
    old: str
    new: str


def copied(part: MendedPart, file: str, old: str, new: str) -> Edit:
    return Edit("copy", part, file, old, new)


def clerk(part: MendedPart, old: str, new: str) -> Edit:
    return Edit("clerk", part, AGENT, old, new)


KEY = "return effect.key if self._form.keys else None"
EXPECTED = "return effect.versions if self._form.compares else None"
HELD = 'self._form.holds("business_rule" if rejected.reason in CONTENT else "schema")'
HEARD = '        if self._tells == "as_success":\n            return None\n'
TOLD = 'return "" if self._tells == "as_success" else why'
DENIED = '    if decision.answer == "denied":\n        return "denied"\n'
CLERK_KEY = 'return f"clerk {effect.key}"'
CLERK_VERIFIES = "        if rejected or value is None:\n"
PASSES = """        if rejected and value is not None and {when}:
            self._workbench.commit_unverified(proposal)
            return None
"""


def letting_pass(when: str) -> Edit:
    """Return the edit by which the clerk lets a rejected proposal pass."""
    return clerk("verifier", CLERK_VERIFIES, PASSES.format(when=when) + CLERK_VERIFIES)


WEAKNESSES: Mapping[str, Edit] = {
    # Commit.
    "the key of an effect is dropped": copied("commit", BOUNDARY, KEY, "return None"),
    "an effect does not say on which versions it was decided": copied("commit", BOUNDARY, EXPECTED, "return None"),
    "all effects of a tool share a key": copied("commit", BOUNDARY, KEY, "return effect.tool"),
    "an effect names the versions before those that it was decided on": clerk(
        "commit", "return effect.versions", "return {thing: version - 1 for thing, version in effect.versions.items()}"
    ),
    "effects of one kind have no key": clerk(
        "commit", CLERK_KEY, 'return f"clerk {effect.key}" if "send" not in effect.tool else None'
    ),
    "an effect's key is the number of the effect, and what was done is not looked up": clerk(
        "commit",
        f"remembers = True\n\n    def idempotency_key(self, effect: StepEffect) -> str | None:\n        {CLERK_KEY}",
        "remembers = False\n\n    def idempotency_key(self, effect: StepEffect) -> str | None:\n        "
        'return f"clerk {effect.number}"',
    ),
    # Verifier.
    "the pack's rules are not held against a proposal": copied("verifier", BOUNDARY, HELD, "rejected.reason not in CONTENT"),
    "the rules of offers are not held": copied("verifier", BOUNDARY, HELD, 'name != "offer"'),
    "a second proposal is not held against the rules": copied("verifier", BOUNDARY, HELD, "proposal.attempt == 1"),
    "nothing is held against a proposal": letting_pass("True"),
    "the rules of closings are not held": letting_pass('rejected.subtask == "close"'),
    "the rules of changes are not held": letting_pass('rejected.subtask == "after_change"'),
    # Signal.
    "a rejection is swallowed": copied("signal", BOUNDARY, HEARD, "        return None\n"),
    "that a step came to nothing is swallowed": copied("signal", BOUNDARY, TOLD, 'return ""'),
    "the second rejection is swallowed": copied(
        "signal",
        BOUNDARY,
        HEARD,
        '        self._times = getattr(self, "_times", 0) + 1\n        if self._times == 2:\n            return None\n',
    ),
    "a rejection of an offer is swallowed": clerk(
        "signal",
        "return rejected\n\n    def reported_reason",
        'return rejected if rejected.subtask != "offer" else None\n\n    def reported_reason',
    ),
    "a rejection of a change is swallowed": clerk(
        "signal",
        "return rejected\n\n    def reported_reason",
        'return rejected if rejected.subtask != "after_change" else None\n\n    def reported_reason',
    ),
    "a denied step is told as done": clerk("signal", "return why", 'return "" if why == "denied" else why'),
    # Pattern.
    "no person is asked where the policy wants one": copied(
        "pattern", GATE, 'if gate == "stamps" or (verdict.allows and gate != "asks_of_all"):', "if True:"
    ),
    "a person's denial is overruled": copied("pattern", GATE, DENIED, DENIED.replace('return "denied"', 'return ""')),
    "a call that fails is not tried again": copied("pattern", CALLING, "LASTING_TRIES = 8", "LASTING_TRIES = 1"),
    "a step is not read again where the world has moved": copied("pattern", RUNNER, "MAX_READS = 5", "MAX_READS = 1"),
    "what a failed step did is not taken back": clerk("pattern", "await self.settle(step, why)", 'await self.settle(step, "")'),
    "nothing is waited for": clerk(
        "pattern",
        "async for ready in clerk.rounds():\n        await clerk.work(ready[0])",
        "while ready := clerk.ready():\n        await clerk.work(ready[0])",
    ),
}
"""Weakness -> its edit."""
HARMLESS: Mapping[str, tuple[Edit, str]] = {
    "keys have another form": (
        copied("commit", BOUNDARY, KEY, 'return f"mine {effect.key}" if self._form.keys else None'),
        "the pack's rules are not held against a proposal",
    ),
    "versions are copied": (
        copied("commit", BOUNDARY, EXPECTED, "return dict(effect.versions) if self._form.compares else None"),
        "a rejection is swallowed",
    ),
    "a denial by the kill switch rejects too": (
        copied("verifier", BOUNDARY, "verdict.rule != KILL_SWITCH", "True"),
        "the key of an effect is dropped",
    ),
    "a rejection is told without its reason": (
        copied("signal", BOUNDARY, 'return rejected if self._tells == "typed" else replace', "return replace"),
        "an effect does not say on which versions it was decided",
    ),
    "the effects of a proposal are looked up twice": (
        clerk("verifier", "for call in effects():", "for call in [*effects(), *effects()]:"),
        "effects of one kind have no key",
    ),
    "a rejection is told as a copy": (
        clerk(
            "signal",
            "return rejected\n\n    def reported_reason",
            "return Rejected(rejected.subtask, rejected.reason, rejected.detail, rejected.reply)\n\n    def reported_reason",
        ),
        "nothing is held against a proposal",
    ),
    "an undo has the key of another form": (
        clerk("commit", 'f"clerk undoes {effect.key}"', 'f"undo by clerk: {effect.key}"'),
        "a rejection of an offer is swallowed",
    ),
    "a failed call is tried twice as often": (
        copied("pattern", CALLING, "LASTING_TRIES = 8", "LASTING_TRIES = 16"),
        "that a step came to nothing is swallowed",
    ),
}
"""Harmless edit -> the edit, and the weakness beside it, which is in another part."""


def edits_of(name: str) -> tuple[Edit, ...]:
    """Return the edits of a weakness, or of a harmless edit and the weakness beside it."""
    if name in WEAKNESSES:
        return (WEAKNESSES[name],)
    harmless, weakness = HARMLESS[name]
    return harmless, WEAKNESSES[weakness]


def write_package(folder: Path, package: str, base: Base, edits: Sequence[Edit] = ()) -> None:
    """Write a package into a folder, with these edits."""
    files = {AGENT: CLERK_FILE.read_text(encoding="utf-8")}
    if base == "copy":
        sources = {path.relative_to(PATTERNS).as_posix(): path.read_text(encoding="utf-8") for path in PATTERNS.rglob("*.py")}
        files = {path: text.replace(PACKAGE, package) for path, text in sources.items()}
        files[AGENT] = COPIED.format(package=package)
    for edit in edits:
        if edit.base != base or files[edit.file].count(edit.old) != 1:
            raise ValueError(f"{base}/{edit.file}: '{edit.old}' stands there {files[edit.file].count(edit.old)} times")
        files[edit.file] = files[edit.file].replace(edit.old, edit.new)
    for path, text in {"__init__.py": "", **files}.items():
        (folder / package / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / package / path).write_text(text, encoding="utf-8")
