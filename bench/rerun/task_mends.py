"""The verifier and the signal of an agent whose task has no world, mended at its workbench.

The verifier knows which outputs a fault has struck, and rejects them. The signal tells the reason of the last rejection at each
further attempt. So a repair is tried without its reason, where the verifier alone is mended, and with it, where both are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from bench.rerun.mended_parts import DEAF, OUTSIDE, UNSTRUCK, MendedPart
from bench.run.trial.faults import OpenReceipt
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Subtask

STRUCK = "it is not what was answered: a value in it has come from elsewhere"
"""The reason with which the mended verifier rejects an output."""
CONTENT_POINTS = ("input", "output")


class MendedTask:
    """A workbench whose verifier and signal are mended, if they are among `parts`, once `has_begun` holds.

    hears        whether the model's replies can depend on a reason
    not_mended   part -> why it cannot be mended; known at the trial's end
    """

    def __init__(self, workbench: Workbench, parts: Collection[MendedPart], has_begun: Callable[[], bool], hears: bool) -> None:
        self._workbench, self._parts, self._has_begun = workbench, parts, has_begun
        self._verify, self._checkpoint = workbench.verify, workbench.checkpoint
        self._propose, self._commit_unverified = workbench.propose, workbench.commit_unverified
        self._unverified: dict[str, Proposal] = {}
        self._rejected: dict[str, Rejected] = {}
        self._hears = hears
        self.not_mended: dict[MendedPart, str] = {"verifier": OUTSIDE, "signal": OUTSIDE}
        hooks: Mapping[str, Any] = {
            "verify": self.verify,
            "checkpoint": self.checkpoint,
            "propose": self.propose,
            "commit_unverified": self.commit_unverified,
        }
        for name, hook in hooks.items():  # only this trial's workbench
            setattr(workbench, name, hook)

    async def propose(self, *subtasks: Subtask, repair: Rejected | None = None, **how: Any) -> Proposal:
        if self._hears:
            self.not_mended.pop("signal", None)
        elif "signal" in self.not_mended:
            self.not_mended["signal"] = DEAF
        if "signal" in self._parts and repair is None and self._has_begun():
            repair = next((self._rejected[each.name] for each in subtasks if each.name in self._rejected), None)
        return await self._propose(*subtasks, repair=repair, **how)

    def commit_unverified(self, proposal: Proposal) -> None:
        self._unverified.update(dict.fromkeys(proposal.names, proposal))
        self._commit_unverified(proposal)

    def verify(self, proposal: Proposal, sufficiency: bool = False) -> Rejected | None:
        rejected = self._verify(proposal, sufficiency)
        return self._heard(rejected or self._of_struck(dict.fromkeys(proposal.names, proposal)), proposal.names)

    def checkpoint(self, stage: Sequence[Subtask]) -> Rejected | None:
        rejected, names = self._checkpoint(stage), [subtask.name for subtask in stage]
        unverified = {name: self._unverified[name] for name in names if name in self._unverified}
        return self._heard(rejected or self._of_struck(unverified), names)

    def _of_struck(self, accepted: Mapping[str, Proposal]) -> Rejected | None:
        """Return the mended verifier's rejection of the first accepted output that a fault has struck, by subtask."""
        if self.not_mended.get("verifier") == OUTSIDE:
            self.not_mended["verifier"] = UNSTRUCK
        for name, proposal in accepted.items():
            if any(_strikes(receipt, name) for receipt in proposal.receipts):
                self.not_mended.pop("verifier", None)
                if "verifier" in self._parts and self._has_begun():
                    self._workbench.reject(proposal, STRUCK)
                    return Rejected(name, "check", STRUCK, proposal.text)
        return None

    def _heard(self, rejected: Rejected | None, names: Collection[str]) -> Rejected | None:
        """Keep a rejection for the further attempts at its subtask. An accepted output has no rejection to keep."""
        for name in names:
            self._rejected.pop(name, None)
        if rejected:
            self._rejected[rejected.subtask] = rejected
        return rejected


def _strikes(receipt: OpenReceipt, subtask: str) -> bool:
    return receipt.is_delivered and receipt.due.subtask == subtask and receipt.due.fault.point in CONTENT_POINTS
