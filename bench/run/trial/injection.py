"""Inject content faults: into a subtask's inputs, into its part of a reply, and into writes to the state."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bench.common.values import dataclass
from bench.record.formats import DEFAULT, AnswerFormat
from bench.run.models.base import Reply, RequestContext
from bench.run.trial.drafts import KNOWN_TAGS, Tags
from bench.run.trial.effects import Target, TextEffect, effect_at
from bench.run.trial.faults import DueFault, FaultSchedule, OpenReceipt
from bench.run.trial.largeness import too_large
from bench.run.trial.pieces import pieces_of
from bench.run.trial.reading import read
from bench.run.trial.reply import ReplyPart, reads_as
from bench.run.trial.state import State
from bench.run.trial.verification import Unreadable
from bench.scenario import Json, Subtask


@dataclass(frozen=True)
class Corrupted:
    """The text of a reply after the due faults at point `output`, and the receipts of these faults."""

    text: str
    receipts: tuple[OpenReceipt, ...] = ()


StrikePlace = tuple[str, int, int]
"""(subtask, attempt, sample), for each of which an output fault strikes at most once."""


class Injection:
    """Applies the content faults of one trial. `wrong_outputs` holds plausible wrong outputs by subtask; `any_text_subtasks`
    names the subtasks for which any text is an output."""

    def __init__(
        self,
        state: State,
        schedule: FaultSchedule,
        wrong_outputs: Mapping[str, Sequence[Json]],
        answer_format: AnswerFormat = DEFAULT,
        tags: Tags = KNOWN_TAGS,
    ):
        self._state, self._schedule, self._wrong_outputs = state, schedule, wrong_outputs
        self._format, self._tags = answer_format, tags
        self._struck: set[StrikePlace] = set()
        self.any_text_subtasks: set[str] = set()
        self._waiting: dict[StrikePlace, tuple[DueFault, int]] = {}

    def strike_inputs(
        self, subtasks: Sequence[Subtask], inputs: dict[str, str], attempt: int, sample: int = 1
    ) -> tuple[dict[str, str], tuple[OpenReceipt, ...]]:
        """Return the inputs with the changes of the due faults at point `input`, and the receipts. No fault strikes an input
        that is made within the call itself.

        Subtasks that share a call share its inputs: an effect that is due for several of them strikes an input once. The
        receipts get the number of their call later: it is the try to which a reply comes.
        """
        receipts: list[OpenReceipt] = []
        struck: set[tuple[str, str]] = set()
        for due in self._schedule.due("input", _names(subtasks), attempt, sample):
            name, effect = self._input_to_strike(due), due.fault.effect
            if name not in inputs:
                continue
            receipt = self._schedule.plan(due, None)
            receipts.append(receipt)
            if (name, effect) in struck:
                receipt.enter("delivered", f"input {name}")
            else:
                inputs = {**inputs, name: self._strike(receipt, self._input_target(name, inputs[name]), f"input {name}")}
                if receipt.is_delivered:
                    struck.add((name, effect))
        return inputs, tuple(receipts)

    def corrupt(self, reply: Reply, subtasks: Sequence[Subtask], context: RequestContext, call: int) -> Corrupted:
        """Return a reply's text with the changes of the due faults at point `output`. Each fault changes its subtask's part.

        A strike after which the reply reads the same is undone, and not applicable. A fault strikes the attempt's first reply
        that reads as the subtask's output. A reply that calls tools is only a step, and is never struck. The last part is
        struck first: a fault in an earlier part can cut the later parts off. Code blocks stand behind all JSON, so a strike on
        a block changes nothing if the JSON of a later part was cut off.
        """
        due_faults = self._faults_for_reply(reply, subtasks, context, call)
        if not due_faults:
            return Corrupted(reply.text)
        pieces, receipts = pieces_of(reply.text, reply.finish, subtasks, self._format, self._tags), []
        for due in reversed(due_faults):
            receipt = self._schedule.plan(due, call)
            part = pieces.part(due.subtask)
            target = self._target(due.subtask, part) if part else Target("")
            receipts.append(receipt)
            changed, where = self._struck_text(due, target), f"reply to call {call}"
            if changed is None or changed == target.text:
                receipt.enter("not_applicable", f"{where} could not carry it")
                continue
            struck = copy.deepcopy(pieces)
            struck.put(due.subtask, changed, _effect(due).ends_reply)
            if self._value_read(struck.text, reply, subtasks) == self._value_read(pieces.text, reply, subtasks):
                receipt.enter("not_applicable", f"{where} reads the same")
                continue
            receipt.enter("delivered", where)
            pieces = struck
        return Corrupted(pieces.text, tuple(receipts))

    def _value_read(self, text: str, reply: Reply, subtasks: Sequence[Subtask]) -> object:
        """Return the value that is read in a reply with this text; the text itself if nothing can be read."""
        extracted = read(text, reply.finish, subtasks, self._format, self._tags)
        return text if isinstance(extracted, Unreadable) else extracted.value

    def end_attempts(self, subtasks: Iterable[Subtask] | None = None, sample: int | None = None) -> None:
        """End the attempts at these subtasks, or at all subtasks; with `sample`, only that sample. A fault that still waits for
        a reply to strike becomes not applicable."""
        if not self._waiting:
            return
        names = None if subtasks is None else set(_names(subtasks))
        for place, (due, call) in list(self._waiting.items()):
            if (names is None or due.subtask in names) and sample in (None, due.sample):
                del self._waiting[place]
                self._struck.add(place)
                self._schedule.plan(due, call).enter("not_applicable", f"no reply read as an output of {due.subtask}")

    def text_to_write(
        self, subtask: Subtask, part: ReplyPart, attempt: int, call: int | None
    ) -> tuple[str, tuple[OpenReceipt, ...]]:
        """Return the text that is written to the state after the due faults at point `state`, and their receipts."""
        text, receipts = part.text, []
        for due in self._schedule.due("state", [subtask.name], attempt):
            receipt = self._schedule.plan(due, call)
            text = self._strike(receipt, self._target(subtask.name, ReplyPart(text, part.value)), f"state {subtask.name}")
            receipts.append(receipt)
        return text, tuple(receipts)

    def preview_write(self, subtask: Subtask, part: ReplyPart, attempt: int) -> str:
        """Return the text that `text_to_write` will return, without planning its faults."""
        text = part.text
        for due in self._schedule.due("state", [subtask.name], attempt):
            text = self._struck_text(due, self._target(subtask.name, ReplyPart(text, part.value))) or text
        return text

    def _faults_for_reply(
        self, reply: Reply, subtasks: Sequence[Subtask], context: RequestContext, call: int
    ) -> list[DueFault]:
        """Return the due faults that strike this reply. The other due faults wait for a later reply of the attempt."""
        strikes = []
        for due in self._schedule.due("output", _names(subtasks), context.attempt, context.sample):
            place = (due.subtask, due.attempt, due.sample)
            if place in self._struck:
                continue
            if self._reads_as_output(reply, due.subtask, subtasks):
                self._struck.add(place)
                self._waiting.pop(place, None)
                strikes.append(due)
            else:
                self._waiting[place] = (due, call)
        return strikes

    def _reads_as_output(self, reply: Reply, name: str, subtasks: Sequence[Subtask]) -> bool:
        """Return whether a reply reads as an output of this subtask, and is no step that calls tools."""
        if reply.tool_calls:
            return False
        subtask = self._state.subtask(name)
        return name in self.any_text_subtasks or reads_as(reply.text, reply.finish, subtask, subtasks, self._format, self._tags)

    def _input_to_strike(self, due: DueFault) -> str:
        """Return the name of the input that a fault strikes; "" if the subtask has none that it can strike. The name
        is drawn from all inputs of the subtask, also from those that another subtask in the same call makes, so that all
        architectures draw the same name."""
        needs_json = _effect(due).needs_json
        reads = [name for name in self._state.subtask(due.subtask).reads if not (needs_json and self._state.is_document(name))]
        return due.draw.choice(reads) if reads else ""

    def _input_target(self, name: str, text: str) -> Target:
        """Return the target of a fault that strikes this input."""
        version = self._state.current(name)
        return self._target(name, ReplyPart(text, version.value)) if version else Target(text)

    def _target(self, name: str, part: ReplyPart) -> Target:
        """Return the target of a fault that strikes this part of a reply, or this committed output."""
        current = self._state.current(name)
        earlier = self._state.previous(name) if current and current.text == part.text else current
        subtask, wrong_outputs = self._state.subtask(name), self._wrong_outputs.get(name, ())
        value = None if isinstance(part.value, Unreadable) or too_large(part.value) else part.value
        validates = subtask.finds is not None
        return Target(part.text, value, subtask.output, earlier.text if earlier else None, wrong_outputs, validates)

    def _strike(self, receipt: OpenReceipt, target: Target, where: str) -> str:
        """Return the text after a fault, and enter in the receipt whether the fault was delivered."""
        changed = self._struck_text(receipt.due, target)
        if changed is None or changed == target.text:
            receipt.enter("not_applicable", f"{where} could not carry it")
            return target.text
        receipt.enter("delivered", where)
        return changed

    @staticmethod
    def _struck_text(due: DueFault, target: Target) -> str | None:
        """Return the text that a fault makes of the target; None if the target cannot carry the fault."""
        effect = _effect(due)
        if not effect.from_reference:
            target = replace(target, wrong_outputs=())
        return effect.strike(target, due.draw) if target.text else None


def _effect(due: DueFault) -> TextEffect:
    """Return the effect of a content fault."""
    return effect_at(due.fault.effect, due.fault.point, TextEffect)


def _names(subtasks: Iterable[Subtask]) -> list[str]:
    return [subtask.name for subtask in subtasks]
