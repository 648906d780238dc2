"""Verify proposals, and outputs in the state, against schemas and checks. Each verdict is logged as an event."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from bench.record.events import Judged, View
from bench.run.trial import verification
from bench.run.trial.cases import Cases
from bench.run.trial.checks import Checks
from bench.run.trial.effects import EFFECTS, TextEffect
from bench.run.trial.faults import OpenReceipt
from bench.run.trial.log import TrialLog
from bench.run.trial.proposal import Proposal
from bench.run.trial.reply import ReplyPart
from bench.run.trial.state import NOTHING, State, Version
from bench.run.trial.verification import Rejected, Unreadable, Verdict
from bench.scenario import Json, Output, Subtask

UNREADABLE = ("empty", "refusal", "not_json", "cut_off", "code_blocks")
"""Reasons that concern a whole reply: any fault that it carried is then detected."""


class Verifier:
    """Verifies the outputs of one trial. `carried` holds the receipts of the faults in each output of the state, by subtask."""

    def __init__(self, state: State, cases: Cases, log: TrialLog, checks: Checks):
        self._state, self._cases, self._log, self._checks = state, cases, log, checks
        self._judged: set[int] = set()
        self._rejected: dict[int, int] = {}
        self._judged_undamaged: set[int] = set()
        self._validated: dict[str, tuple[Json | Unreadable, Verdict]] = {}
        """Subtask -> the value that was last checked against its schema, and the verdict."""
        self.carried: dict[str, tuple[OpenReceipt, ...]] = {}

    def has_judged(self, call: int) -> bool:
        """Return whether a verdict was logged on an output that this call made."""
        return call in self._judged

    def has_rejected(self, call: int) -> bool:
        """Return whether an output that this call made was rejected."""
        return call in self._rejected

    def rejection_of(self, call: int) -> int | None:
        """Return the number of the last event that rejected an output of this call; None if no event did."""
        return self._rejected.get(call)

    def can_be_slow(self, text: str) -> bool:
        """Return whether the checks of a proposal with this text can be slow."""
        return self._checks.can_be_slow(text)

    async def run_ahead(self, proposal: Proposal) -> None:
        """Run the checks of a proposal off the event loop. `verify` and `verify_stage` then find their results."""
        for parts in filter(None, (proposal.parts, proposal.undamaged)):
            values = {name: part.value for name, part in parts.items()}
            earlier, documents = self._inputs_of(proposal.subtasks, values, proposal.documents)
            undamaged = self._undamaged_inputs(proposal.subtasks)
            for outputs in (earlier, {**earlier, **undamaged}) if undamaged else (earlier,):
                judging = functools.partial(verification.judge, proposal.subtasks, values, documents, outputs, ())
                await self._checks.run_ahead(judging)

    def _undamaged_inputs(self, subtasks: Sequence[Subtask]) -> dict[str, Output]:
        """Return the inputs of these subtasks as they were before faults at point `output`, if a checkpoint will judge
        these."""
        read = {name for subtask in subtasks for name in subtask.reads}
        struck = {receipt.due.subtask for name in read for receipt in self._struck_receipts(self.carried.get(name, ()))} & read
        parts = {name: version.undamaged for name in struck if (version := self._state.current(name))}
        values = {name: part.value for name, part in parts.items() if part}
        verdicts = {name: verification.validate(self._state.subtask(name), value) for name, value in values.items()}
        return {name: verdict for name, verdict in verdicts.items() if isinstance(verdict, Output)}

    def verify(self, proposal: Proposal, sufficiency: bool, view: View = "told", kept: Collection[str] = ()) -> Rejected | None:
        """Log a verdict for each part of a proposal.

        Args:
            proposal: What a proposer made of a reply.
            sufficiency: Whether an output that is right and too weak to build on is rejected.
            view: What the verdict is on (`View`).
            kept: The subtasks whose part the proposer keeps even if it is rejected: a rejection detects no fault in these.

        Returns:
            The first rejection, with the reply; None if all parts are accepted.
        """
        self._judge_undamaged(proposal, sufficiency)
        verdicts = self._verdicts_on_reply(proposal, proposal.parts, sufficiency)
        for name, verdict in verdicts.items():
            if not isinstance(verdict, Rejected):
                self._validated[name] = proposal.parts[name].value, verdict
            self.log_verdict(name, proposal.calls, verdict, () if name in kept else proposal.receipts, view, proposal.case)
        rejected = _first_rejected(verdicts)
        return replace(rejected, reply=proposal.text) if rejected else None

    def verify_stage(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Log a verdict for each of these outputs in the state. Returns the first rejection or None."""
        versions = {subtask.name: self.version(subtask.name) for subtask in stage}
        self._judge_stage_undamaged(stage, versions)
        verdicts = self._judge(stage, {name: version.value for name, version in versions.items()})
        for name, verdict in verdicts.items():
            self.log_verdict(name, versions[name].calls, verdict, self.carried.get(name, ()))
        return _first_rejected(verdicts)

    def log_verdict(
        self,
        name: str,
        calls: tuple[int, ...],
        verdict: Verdict,
        receipts: Sequence[OpenReceipt],
        view: View = "told",
        case: str = "",
    ) -> None:
        """Log one verdict. A rejection detects the faults in its output; a `found_wrong` rejection also detects the faults that
        caused the finding."""
        self._judged.update(calls)
        if not isinstance(verdict, Rejected):
            self._log.emit(Judged(calls, name, accepted=True, view=view))
            return
        number = self._log.emit(Judged(calls, name, False, verdict.reason, verdict.detail, view, violation=verdict.kind))
        self._rejected.update(dict.fromkeys(calls, number))
        self._cases.of(case).note_failure([name], number)
        for receipt in receipts:
            if receipt.due.subtask == name or verdict.reason in UNREADABLE:
                receipt.detect()
        if verdict.reason == "found_wrong":
            for receipt in filter(_alarms, (*receipts, *chain(*self.carried.values()))):
                receipt.detect()

    def outputs(self, names: Collection[str]) -> dict[str, Output]:
        """Return the outputs of these subtasks in the state, without outputs that do not fit their schemas."""
        return {
            name: verdict
            for name in names
            if (version := self._state.current(name)) and not isinstance(verdict := self._output(version), Rejected)
        }

    def _output(self, version: Version) -> Verdict:
        """Validate a version against its schema. Each value is validated once."""
        known = self._validated.get(version.subtask)
        if known is None or known[0] is not version.value:
            verdict = verification.validate(self._state.subtask(version.subtask), version.value)
            known = self._validated[version.subtask] = version.value, verdict
        return known[1]

    def version(self, name: str) -> Version:
        """Return the output of this subtask in the state. Raises RuntimeError if there is none."""
        version = self._state.current(name)
        if version is None:
            raise RuntimeError(f"the architecture left '{name}' without an output")
        return version

    def _verdicts_on_reply(self, proposal: Proposal, parts: Mapping[str, ReplyPart], sufficiency: bool) -> dict[str, Verdict]:
        """Return the verdict on each part of a proposal's reply."""
        values = {name: part.value for name, part in parts.items()}
        verdicts = self._judge(proposal.subtasks, values, given=proposal.documents)
        return {name: self._sufficient(name, verdict) for name, verdict in verdicts.items()} if sufficiency else verdicts

    def _judge_undamaged(self, proposal: Proposal, sufficiency: bool) -> None:
        """Log whether a reply that faults struck would have been rejected without them."""
        if proposal.undamaged and (struck := self._struck_receipts(proposal.receipts)):
            verdicts = self._verdicts_on_reply(proposal, proposal.undamaged, sufficiency)
            self._log_undamaged(struck, verdicts, proposal.calls, as_a_whole=True)

    def _judge_stage_undamaged(self, stage: Sequence[Subtask], versions: Mapping[str, Version]) -> None:
        """Log, at a checkpoint, whether outputs that faults struck would have been rejected without them. A later subtask's
        finding about a damaged output is ignored for the undamaged output."""
        carried = {
            receipt.number: receipt for name in versions for receipt in self._struck_receipts(self.carried.get(name, ()))
        }
        struck_receipts = [
            commit for commit in carried.values() if commit.due.subtask in versions and versions[commit.due.subtask].undamaged
        ]
        if not struck_receipts:
            return
        names = {receipt.due.subtask for receipt in struck_receipts}
        values = {
            name: version.undamaged.value if name in names and version.undamaged else version.value
            for name, version in versions.items()
        }
        misled = {name for name, version in versions.items() if version.is_made_from(names)}
        verdicts = self._judge(stage, values, misled)
        for receipt in struck_receipts:
            self._log_undamaged([receipt], verdicts, versions[receipt.due.subtask].calls, as_a_whole=False)

    def _struck_receipts(self, receipts: Sequence[OpenReceipt]) -> list[OpenReceipt]:
        """Return, of these receipts, the delivered faults at point `output` whose undamaged reply has no verdict yet."""
        at_output = (receipt for receipt in receipts if receipt.due.fault.point == "output" and receipt.is_delivered)
        return [receipt for receipt in at_output if receipt.number not in self._judged_undamaged]

    def _log_undamaged(
        self, struck: Sequence[OpenReceipt], verdicts: Mapping[str, Verdict], calls: tuple[int, ...], as_a_whole: bool
    ) -> None:
        """Log the verdict on the undamaged reply of each of these faults. With `as_a_whole`, one rejected part rejects the
        other parts of the reply too."""
        rejected = _first_rejected(verdicts) if as_a_whole else None
        for receipt in struck:
            name = receipt.due.subtask
            if name not in verdicts:
                continue
            self._judged_undamaged.add(receipt.number)
            judged = verdicts[name]
            verdict = judged if isinstance(judged, Rejected) else rejected
            if verdict is None and isinstance(judged, Output) and _alarms(receipt):
                verdict = verification.finding(self._state.subtask(name), judged)
            if not isinstance(verdict, Rejected):
                self._log.emit(Judged(calls, name, True, view="undamaged", fault=receipt.number))
                continue
            detail = verdict.detail if verdict.subtask == name else f"{verdict.subtask}: {verdict.detail}"
            self._log.emit(
                Judged(calls, name, False, verdict.reason, detail, "undamaged", receipt.number, violation=verdict.kind)
            )

    def _judge(
        self,
        subtasks: Sequence[Subtask],
        values: Mapping[str, Json | Unreadable],
        misled: Collection[str] = (),
        given: Mapping[str, str] = NOTHING,
    ) -> dict[str, Verdict]:
        """Return the verdicts on these values, with the outputs in the state that the subtasks read."""
        earlier, documents = self._inputs_of(subtasks, values, given)
        return verification.judge(subtasks, values, documents, earlier, misled, self._checks.ask)

    def _inputs_of(
        self, subtasks: Sequence[Subtask], values: Collection[str], given: Mapping[str, str]
    ) -> tuple[dict[str, Output], Mapping[str, str]]:
        """Return the outputs in the state that these subtasks read, and the documents."""
        state = self._state
        outside = [name for subtask in subtasks for name in subtask.reads if name not in values and not state.is_document(name)]
        return self.outputs(outside), {**state.documents, **given} if given else state.documents

    def _sufficient(self, name: str, verdict: Verdict) -> Verdict:
        """Return the verdict, or the rejection of a valid output that is too weak to build on."""
        if isinstance(verdict, Rejected):
            return verdict
        return verification.insufficient(self._state.subtask(name), verdict) or verdict


def _first_rejected(verdicts: Mapping[str, Verdict]) -> Rejected | None:
    return next((verdict for verdict in verdicts.values() if isinstance(verdict, Rejected)), None)


def _alarms(receipt: OpenReceipt) -> bool:
    """Return whether the fault makes a validating subtask report something wrong."""
    effect = EFFECTS[receipt.due.fault.effect, receipt.due.fault.point]
    return isinstance(effect, TextEffect) and effect.alarms
