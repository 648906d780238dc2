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
from bench.run.trial.state import NO_DOCUMENTS, State, Version
from bench.run.trial.verification import Rejected, Unreadable, Verdict
from bench.scenario import Json, Output, Subtask

WHOLE_REPLY_REASONS = ("empty", "refusal", "not_json", "cut_off", "code_blocks")
"""Reasons that concern a whole reply: a rejection for one of them detects every fault in the reply."""


class Verifier:
    """Verifies the outputs of one trial. `receipts_by_output` holds the receipts of the faults in each output of the state, by
    the output's subtask."""

    def __init__(self, state: State, cases: Cases, log: TrialLog, checks: Checks):
        self._state, self._cases, self._log, self._checks = state, cases, log, checks
        self._judged: set[int] = set()
        self._rejected: dict[int, int] = {}
        self._judged_undamaged: set[int] = set()
        self._validated: dict[str, tuple[Json | Unreadable, Verdict]] = {}
        """Subtask -> the value that was last checked against its schema, and the verdict."""
        self.receipts_by_output: dict[str, tuple[OpenReceipt, ...]] = {}

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
                judge = functools.partial(verification.judge, proposal.subtasks, values, documents, outputs, ())
                await self._checks.run_ahead(judge)

    def _undamaged_inputs(self, subtasks: Sequence[Subtask]) -> dict[str, Output]:
        """Return, by subtask, the valid inputs of these subtasks before faults at point `output` struck them. An input whose
        undamaged form already has a verdict is left out."""
        inputs = {name for subtask in subtasks for name in subtask.reads}
        receipts = chain.from_iterable(self.receipts_by_output.get(name, ()) for name in inputs)
        struck = {receipt.due.subtask for receipt in self._struck_receipts(list(receipts))} & inputs
        parts = {name: version.undamaged for name in struck if (version := self._state.current(name))}
        values = {name: part.value for name, part in parts.items() if part}
        verdicts = {name: verification.validate(self._state.subtask(name), value) for name, value in values.items()}
        return {name: verdict for name, verdict in verdicts.items() if isinstance(verdict, Output)}

    def verify(
        self, proposal: Proposal, sufficiency: bool, view: View = "told", unchanged: Collection[str] = ()
    ) -> Rejected | None:
        """Log a verdict for each part of a proposal.

        Args:
            proposal: What a proposer made of a reply.
            sufficiency: Whether an output that is right and too weak to build on is rejected.
            view: What the verdict is on (`View`).
            unchanged: The subtasks whose part the proposer submits unchanged even if it is rejected: a rejection detects no
                fault in these.

        Returns:
            The first rejection, with the reply; None if all parts are accepted.
        """
        self._judge_undamaged(proposal, sufficiency)
        verdicts = self._verdicts_on_reply(proposal, proposal.parts, sufficiency)
        for name, verdict in verdicts.items():
            if not isinstance(verdict, Rejected):
                self._validated[name] = proposal.parts[name].value, verdict
            self.log_verdict(name, proposal.calls, verdict, () if name in unchanged else proposal.receipts, view, proposal.case)
        rejected = _first_rejected(verdicts)
        return replace(rejected, reply=proposal.text) if rejected else None

    def verify_stage(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Log a verdict for each output of these subtasks in the state. Return the first rejection; None if all are
        accepted."""
        versions = {subtask.name: self.version(subtask.name) for subtask in stage}
        self._judge_stage_undamaged(stage, versions)
        verdicts = self._judge(stage, {name: version.value for name, version in versions.items()})
        for name, verdict in verdicts.items():
            self.log_verdict(name, versions[name].calls, verdict, self.receipts_by_output.get(name, ()))
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
            if receipt.due.subtask == name or verdict.reason in WHOLE_REPLY_REASONS:
                receipt.detect()
        if verdict.reason == "found_wrong":
            for receipt in filter(_alarms, (*receipts, *chain(*self.receipts_by_output.values()))):
                receipt.detect()

    def outputs(self, names: Collection[str]) -> dict[str, Output]:
        """Return the outputs of these subtasks in the state, without outputs that do not fit their schemas."""
        return {
            name: verdict
            for name in names
            if (version := self._state.current(name)) and not isinstance(verdict := self._validated_output(version), Rejected)
        }

    def _validated_output(self, version: Version) -> Verdict:
        """Validate a version against its schema. Each value is validated once."""
        value, verdict = self._validated.get(version.subtask, (None, None))
        if verdict is None or value is not version.value:
            verdict = verification.validate(self._state.subtask(version.subtask), version.value)
            self._validated[version.subtask] = version.value, verdict
        return verdict

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
        if not sufficiency:
            return verdicts
        return {name: self._require_sufficient(name, verdict) for name, verdict in verdicts.items()}

    def _judge_undamaged(self, proposal: Proposal, sufficiency: bool) -> None:
        """Log whether a reply that faults struck would have been rejected without them."""
        if proposal.undamaged and (struck := self._struck_receipts(proposal.receipts)):
            verdicts = self._verdicts_on_reply(proposal, proposal.undamaged, sufficiency)
            self._log_undamaged(struck, verdicts, proposal.calls, as_a_whole=True)

    def _judge_stage_undamaged(self, stage: Sequence[Subtask], versions: Mapping[str, Version]) -> None:
        """Log, at a checkpoint, whether outputs that faults struck would have been rejected without them. The findings of
        subtasks that read a damaged output are ignored for the undamaged output."""
        receipts = chain.from_iterable(self.receipts_by_output.get(name, ()) for name in versions)
        by_number = {receipt.number: receipt for receipt in self._struck_receipts(list(receipts))}
        undamaged = {name for name, version in versions.items() if version.undamaged}
        struck_receipts = [receipt for receipt in by_number.values() if receipt.due.subtask in undamaged]
        if not struck_receipts:
            return
        names = {receipt.due.subtask for receipt in struck_receipts}
        values = {
            name: version.undamaged.value if name in names and version.undamaged else version.value
            for name, version in versions.items()
        }
        readers = {name for name, version in versions.items() if version.is_made_from(names)}
        verdicts = self._judge(stage, values, without_findings_of=readers)
        for receipt in struck_receipts:
            self._log_undamaged([receipt], verdicts, versions[receipt.due.subtask].calls, as_a_whole=False)

    def _struck_receipts(self, receipts: Sequence[OpenReceipt]) -> list[OpenReceipt]:
        """Return the receipts, among these, of delivered faults at point `output` whose undamaged reply has no verdict yet."""
        at_output = (receipt for receipt in receipts if receipt.due.fault.point == "output" and receipt.is_delivered)
        return [receipt for receipt in at_output if receipt.number not in self._judged_undamaged]

    def _log_undamaged(
        self, struck: Sequence[OpenReceipt], verdicts: Mapping[str, Verdict], calls: tuple[int, ...], as_a_whole: bool
    ) -> None:
        """Log, for each of these faults, the verdict on the undamaged output of its subtask. With `as_a_whole`, the first
        rejection in `verdicts` counts for all subtasks that have none of their own."""
        rejected = _first_rejected(verdicts) if as_a_whole else None
        for receipt in struck:
            name = receipt.due.subtask
            if name not in verdicts:
                continue
            self._judged_undamaged.add(receipt.number)
            own_verdict = verdicts[name]
            verdict = own_verdict if isinstance(own_verdict, Rejected) else rejected
            if verdict is None and isinstance(own_verdict, Output) and _alarms(receipt):
                verdict = verification.finding(self._state.subtask(name), own_verdict)
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
        without_findings_of: Collection[str] = (),
        given: Mapping[str, str] = NO_DOCUMENTS,
    ) -> dict[str, Verdict]:
        """Return the verdict on each of these values, in which the outputs that the subtasks read come from the state."""
        earlier, documents = self._inputs_of(subtasks, values, given)
        return verification.judge(subtasks, values, documents, earlier, without_findings_of, self._checks.ask)

    def _inputs_of(
        self, subtasks: Sequence[Subtask], values: Collection[str], given: Mapping[str, str]
    ) -> tuple[dict[str, Output], Mapping[str, str]]:
        """Return the outputs in the state that these subtasks read, without the subtasks that have a value, and the
        documents."""
        state = self._state
        names = [name for subtask in subtasks for name in subtask.reads if name not in values and not state.is_document(name)]
        return self.outputs(names), {**state.documents, **given} if given else state.documents

    def _require_sufficient(self, name: str, verdict: Verdict) -> Verdict:
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
