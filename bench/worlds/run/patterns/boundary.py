"""The boundary between a proposal and its effects, in three parts: verifier, signal and commit.

A pattern works through all three, and a runner can exchange each of them (`WorldActions.exchanged`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.record.form import Form
from bench.run.models.rejections import NOT_ACCEPTED
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.worlds.run.environment import KILL_SWITCH, Call
from bench.worlds.run.patterns.memory import StepEffect
from bench.worlds.run.runtime.actions import WorldActions

CONTENT = ("check", "insufficient", "found_wrong")
"""Reasons of rejection other than the schema."""


class ProposalVerifier:
    """Verifies a proposal as strictly as the form says, and writes it to the state if it passes."""

    def __init__(self, workbench: Workbench, form: Form):
        self._workbench, self._form = workbench, form
        self._world: WorldActions = workbench.world

    def admit(self, proposal: Proposal, value: Any, effects: Callable[[], Iterable[Call]]) -> Rejected | None:
        """Return the rejection of a proposal of one subtask; None if the proposal has passed and is written.

        Args:
            proposal: The proposal.
            value: The output of the proposal as JSON; None if there is no output.
            effects: Returns the calls that the output would cause.
        """
        [name] = proposal.names
        rejected = self._workbench.verify(proposal)
        if rejected and (value is None or self._form.holds("business_rule" if rejected.reason in CONTENT else "schema")):
            return rejected
        if why := self._against_policy(effects) if self._form.holds("policy") else "":
            self._workbench.reject(proposal, why)
            return Rejected(name, "check", why, proposal.text)
        if rejected:
            self._workbench.commit_unverified(proposal)
        else:
            self._workbench.commit(proposal)
        return None

    def _against_policy(self, effects: Callable[[], Iterable[Call]]) -> str:
        """Return why the policy denies one of these effects; "" if it denies none."""
        for call in effects():
            if call.tool not in self._world.tools:
                continue  # the world will refuse it
            verdict = self._world.verdict(call.tool, call.arguments)
            if verdict.decision == "deny" and verdict.rule != KILL_SWITCH:
                return verdict.why or verdict.rule or f"the policy denies {call.tool}"
        return ""


class RejectSignal:
    """Decides what the proposer, and the steps that follow, are told about a rejection."""

    def __init__(self, form: Form):
        self._tells = form.tells

    def for_proposer(self, rejected: Rejected) -> Rejected | None:
        """Return the rejection in the form that the proposer gets; None if rejections read as success: then nothing is asked
        again."""
        if self._tells == "as_success":
            return None
        return rejected if self._tells == "typed" else replace(rejected, detail=NOT_ACCEPTED)

    def reported_reason(self, why: str) -> str:
        """Return the reported reason why a step failed; "" if rejections are reported as success."""
        return "" if self._tells == "as_success" else why


class EffectCommit:
    """Decides which idempotency key an effect is sent with, and which versions the rows that it changes must still have."""

    def __init__(self, form: Form):
        self._form = form

    @property
    def remembers(self) -> bool:
        """Whether a step looks up its intended and done effects before it acts."""
        return self._form.keys

    def idempotency_key(self, effect: StepEffect) -> str | None:
        return effect.key if self._form.keys else None

    def undo_key(self, effect: StepEffect) -> str | None:
        return f"undo {effect.key}" if self._form.keys else None

    def expected_versions(self, effect: StepEffect) -> Mapping[str, int] | None:
        return effect.versions if self._form.compares else None


@dataclass(frozen=True)
class Boundary:
    """The three parts of a boundary."""

    verifier: ProposalVerifier
    signal: RejectSignal
    commit: EffectCommit

    @staticmethod
    def of(workbench: Workbench, form: Form) -> Boundary:
        """Return the boundary of this suite, with the settings of a form."""
        return Boundary(ProposalVerifier(workbench, form), RejectSignal(form), EffectCommit(form))
