"""The settings of a pattern in a world: whether it has its author's remedies, and how strong its boundary is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Strength = Literal["none", "schema", "policy", "business_rule"]
"""What a proposal must pass before it is committed. Each level includes the levels before it: nothing; its schema; the policy
on its effects; the pack's checks."""
Commit = Literal["plain", "idempotent", "compare_and_swap"]
"""How an effect is made: by a plain call; under a key made from its business key; or also only if the versions on which it was
decided are still current."""
Signal = Literal["typed", "untyped", "as_success"]
"""What the agent is told of a rejection: the reason; only the rejection; or that all went well."""
Approval = Literal["never", "risky", "always"]
"""Which effects a person must approve: none; those that the policy names; all. A denial by the policy always holds."""
LATER = ("approval", "deadline", "catches_up", "children", "pins", "undo_order")
"""Settings that did not exist when some recorded trials ran."""
UndoOrder = Literal["reverse", "as_done"]
"""The order in which the effects of a saga are taken back: from the last effect, or from the first."""
Repair = Literal["none", "reason", "reason+reply"]
STRENGTHS: tuple[Strength, ...] = ("none", "schema", "policy", "business_rule")


@dataclass(frozen=True)
class Form:
    """The settings of a pattern.

    remedies     whether the remedies of the pattern's author are on. They choose each of the next four settings that is None.
                 `deadline` and `catches_up` are not part of them, because they were measured without
    strength     what a proposal must pass before it is committed
    commit       how an effect is made
    signal       what the agent is told of a rejection
    approval     which effects a person must approve
    deadline     the minutes of world time after which a read is given up and made again
    catches_up   whether the agent asks for events that it missed
    children     the number of child agents that make each judgment
    pins         whether a decision on a state is kept, so that no other version of the model is asked about the state; this is
                 one of the author's remedies, and can be on without the others
    undo_order   the order in which the effects of a saga are undone; by default `reverse`
    """

    remedies: bool = False
    strength: Strength | None = None
    commit: Commit | None = None
    signal: Signal | None = None
    approval: Approval | None = None
    deadline: int | None = None
    catches_up: bool = False
    children: int | None = None
    pins: bool = False
    undo_order: UndoOrder | None = None

    def holds(self, strength: Strength) -> bool:
        """Whether the boundary is at least this strong."""
        kept: Strength = self.strength or ("business_rule" if self.remedies else "schema")
        return STRENGTHS.index(kept) >= STRENGTHS.index(strength)

    @property
    def lets_misfits_pass(self) -> bool:
        """Whether an output that does not fit its schema can have effects: the schema is not checked, or a rejection is told
        as success."""
        return not self.holds("schema") or self.tells == "as_success"

    @property
    def keys(self) -> bool:
        """Whether an effect is made under an idempotency key."""
        return self._commit != "plain"

    @property
    def compares(self) -> bool:
        """Whether an effect is made only if the versions on which it was decided are still current."""
        return self._commit == "compare_and_swap"

    @property
    def tells(self) -> Signal:
        return self.signal or "typed"

    @property
    def settings(self) -> dict[str, object]:
        """The settings as a trial's id has them. A setting in LATER is left out unless it is given."""
        return {name: value for name, value in asdict(self).items() if value or name not in LATER}

    @property
    def _commit(self) -> Commit:
        return self.commit or ("compare_and_swap" if self.remedies else "plain")


BARE = Form()
