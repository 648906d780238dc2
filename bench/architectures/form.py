"""In which form a pattern runs: bare, or with its author's remedies, and with which boundary."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Strength = Literal["none", "schema", "policy", "business_rule"]
"""What is held against a proposal before it is committed, each with all before it: nothing; its schema; the policy's word on
the effects that it would have; the pack's checks."""
Commit = Literal["plain", "idempotent", "compare_and_swap"]
"""How an effect is made: as a call; under a key made from its business key; and only on the versions that it was decided on."""
Signal = Literal["typed", "untyped", "as_success"]
"""What the proposer hears of a rejection: why; that; or that all went well."""
Approval = Literal["never", "risky", "always"]
"""Before which effects a person is asked: none; those for which the policy wants one; all. A denial by the policy holds."""
LATER = ("approval", "deadline", "catches_up", "children", "pins")
"""Settings that came when trials had been run without them."""
STRENGTHS: tuple[Strength, ...] = ("none", "schema", "policy", "business_rule")


@dataclass(frozen=True)
class Form:
    """`remedies` are the author's. The boundary's three settings and `approval` are theirs, unless they are set apart. Two
    remedies are set for themselves, since the others were measured without them: `deadline`, the minutes of world time after
    which a read is given up and made again, and `catches_up`, by which the agent asks for the events that it was never told.
    `children` make each judgment. `pins` is a remedy that those of the author hold, and can be set alone: what was decided of a
    state stands, with the version of the model that decided it, and no other version is asked of the same state."""

    remedies: bool = False
    strength: Strength | None = None
    commit: Commit | None = None
    signal: Signal | None = None
    approval: Approval | None = None
    deadline: int | None = None
    catches_up: bool = False
    children: int | None = None
    pins: bool = False

    def holds(self, strength: Strength) -> bool:
        """Whether the boundary is at least so strong."""
        kept: Strength = self.strength or ("business_rule" if self.remedies else "schema")
        return STRENGTHS.index(kept) >= STRENGTHS.index(strength)

    @property
    def lets_misfits_pass(self) -> bool:
        """Whether an output that misfits its schema can be acted on: none is looked at, or a rejection reads as success."""
        return not self.holds("schema") or self.tells == "as_success"

    @property
    def keys(self) -> bool:
        """Whether an effect is made under a key."""
        return self._commit != "plain"

    @property
    def compares(self) -> bool:
        return self._commit == "compare_and_swap"

    @property
    def tells(self) -> Signal:
        return self.signal or "typed"

    @property
    def settings(self) -> dict[str, object]:
        """What it sets, as it stands in a trial's id: a setting that came later stands there where it is given."""
        return {name: value for name, value in asdict(self).items() if value or name not in LATER}

    @property
    def _commit(self) -> Commit:
        return self.commit or ("compare_and_swap" if self.remedies else "plain")


BARE = Form()
