"""The turns in which one proposer makes its outputs: an agent can plan, answer, read more and answer again.

An agent does not say how many turns an output will take, nor which turns the output comes from. Both are inferred here from its
calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.common.values import dataclass
from bench.record.formats import DEFAULT, AnswerFormat
from bench.run.trial.call import Received
from bench.run.trial.causes import CallPurpose
from bench.run.trial.decoding import Extracted
from bench.run.trial.drafts import KNOWN_TAGS, LONG_REPLY_CHARS, Tags
from bench.run.trial.judging import Verifier
from bench.run.trial.proposal import Proposal
from bench.run.trial.reading import read
from bench.run.trial.reply import ReplyPart, extracted_reads_as, parts_in, parts_of, reads_as
from bench.run.trial.state import Source, State
from bench.run.trial.verification import Unreadable
from bench.scenario import Json, Subtask


@dataclass(frozen=True)
class Turn:
    """One call and its reply. `gives_output` says whether the reply reads as an output of one of the subtasks, before or after
    its faults; a reply that calls tools is only a step. `extracted` is what was read in the reply's text; None for a long
    reply, whose reader caches the result (`bench.run.trial.drafts`)."""

    subtasks: tuple[Subtask, ...]
    purpose: CallPurpose
    received: Received
    gives_output: bool
    extracted: Extracted | Unreadable | None


class Turns:
    """The calls that one proposer has made so far, by subtask."""

    def __init__(self, state: State, verifier: Verifier, answer_format: AnswerFormat = DEFAULT, tags: Tags = KNOWN_TAGS):
        self._state, self._verifier, self._format, self._tags = state, verifier, answer_format, tags
        self._by_subtask: dict[str, list[Turn]] = {}
        self._by_call: dict[int, Turn] = {}
        self._proposed_calls: set[int] = set()

    def add(self, subtasks: Sequence[Subtask], purpose: CallPurpose, received: Received) -> None:
        """Add a call and its reply as a turn."""
        text, undamaged, finish = received.text, received.undamaged, received.finish
        extracted = read(text, finish, subtasks, self._format, self._tags)
        gives_output = not received.tool_calls and any(extracted_reads_as(extracted, subtask, subtasks) for subtask in subtasks)
        if undamaged is not None and not received.tool_calls and not gives_output:
            gives_output = any(reads_as(undamaged, finish, subtask, subtasks, self._format, self._tags) for subtask in subtasks)
        turn = Turn(tuple(subtasks), purpose, received, gives_output, extracted if len(text) <= LONG_REPLY_CHARS else None)
        self._by_call[received.call] = turn
        for subtask in subtasks:
            self._by_subtask.setdefault(subtask.name, []).append(turn)

    def parts(self, text: str, subtasks: Sequence[Subtask], finish: str = "stop") -> dict[str, ReplyPart]:
        """Return the parts of these subtasks in a text."""
        return parts_of(text, finish, subtasks, self._format, self._tags)

    def has_reply(self, name: str) -> bool:
        """Return whether a reply arrived from which this subtask's output can have been made."""
        return name in self._by_subtask

    def under_way(self, subtasks: Sequence[Subtask]) -> bool:
        """Return whether the last reply for these subtasks is neither an output nor proposed as an output."""
        last = self._last(subtasks)
        return last is not None and not last.gives_output and last.received.call not in self._proposed_calls

    def slow_proposals(self, subtasks: Sequence[Subtask]) -> Iterator[Proposal]:
        """Return the proposals without a verdict whose checks can be slow."""
        return self._unjudged_proposals(subtasks, self._verifier.can_be_slow)

    def _unjudged_proposals(
        self, subtasks: Sequence[Subtask], is_wanted: Callable[[str], bool] = lambda _: True
    ) -> Iterator[Proposal]:
        """Yield a proposal for each reply for these subtasks that gives an output and has no verdict, if `is_wanted` is True
        for its text."""
        turns = {turn.received.call: turn for subtask in subtasks for turn in self._by_subtask.get(subtask.name, [])}
        for call, turn in sorted(turns.items()):
            if turn.gives_output and not self._verifier.has_judged(call) and is_wanted(turn.received.text):
                yield self._proposal([turn], turn.received.text, turn.subtasks)

    def judge_last(self, subtasks: Sequence[Subtask]) -> int | None:
        """Verify in shadow the last reply for these subtasks, if it gives an output without a verdict. Return the number of the
        event that rejected it; None if no event did."""
        last = self._last(subtasks)
        if last is None:
            return None
        if last.gives_output and not self._verifier.has_judged(last.received.call):
            self._verifier.verify(self._proposal([last], last.received.text, last.subtasks), sufficiency=False, view="shadow")
        return self._verifier.rejection_of(last.received.call)

    def judge_rest(self, subtask: Subtask, final_parts: Mapping[str, ReplyPart]) -> None:
        """Verify, in shadow, each reply for this subtask with an output that has no verdict. `final_parts` is the answer that
        the proposer submits, by subtask: if a rejected output is in the answer unchanged, the rejection detects no fault."""
        for proposal in self._unjudged_proposals([subtask]):
            unchanged = {
                name for name, part in proposal.parts.items() if name in final_parts and final_parts[name].value == part.value
            }
            self._verifier.verify(proposal, sufficiency=False, view="shadow", unchanged=unchanged)

    def proposal(
        self,
        text: str,
        subtasks: Sequence[Subtask],
        made_from: Sequence[Source] | None = None,
        call: int | None = None,
    ) -> Proposal:
        """Return a proposal of the outputs in `text`. `made_from` holds their inputs; None stands for the present inputs.
        `call` is the number of the call whose reply is `text`; None for a framework, which does not say. Raises RuntimeError if
        no reply arrived for one of the subtasks."""
        missing = [subtask.name for subtask in subtasks if not self.has_reply(subtask.name)]
        if missing:
            raise RuntimeError(f"no reply ever came for {' + '.join(missing)}")
        turns = [self._turn_of(text, subtask, subtasks, call) for subtask in subtasks]
        by_call = {turn.received.call: turn for turn in turns}
        self._proposed_calls.update(by_call)
        return self._proposal([turn for _, turn in sorted(by_call.items())], text, tuple(subtasks), made_from)

    def _last(self, subtasks: Sequence[Subtask]) -> Turn | None:
        """Return the last turn for any of these subtasks."""
        turns = [self._by_subtask[subtask.name][-1] for subtask in subtasks if subtask.name in self._by_subtask]
        return max(turns, key=lambda turn: turn.received.call, default=None)

    def _turn_of(self, text: str, subtask: Subtask, subtasks: Sequence[Subtask], call: int | None) -> Turn:
        """Return the turn that made `text`. If the call is unknown, return the last turn whose reply is this text; else the
        last turn whose reply has the same value for the subtask; else the last turn."""
        if call is not None:
            return self._by_call[call]
        turns = self._by_subtask[subtask.name][::-1]
        if same_text := next((turn for turn in turns if turn.received.text == text), None):
            return same_text
        part = self.parts(text, subtasks).get(subtask.name)
        value = part.value if part and not isinstance(part.value, Unreadable) else None
        same_value = (turn for turn in turns if value is not None and self._value(turn, subtask) == value)
        return next(same_value, turns[0])

    def _proposal(
        self, sources: Sequence[Turn], text: str, subtasks: tuple[Subtask, ...], made_from: Sequence[Source] | None = None
    ) -> Proposal:
        """Return a proposal of the outputs in `text`: the reply of one turn in `sources`, or a text made from all these turns.
        None as `made_from` stands for the present sources of the subtasks."""
        turns = {turn.received.call: turn for source in sources for turn in self._turns_behind(source)}
        calls = sorted(turns)
        undamaged: dict[str, ReplyPart] = {}
        for turn in sources:
            if turn.received.undamaged is not None:
                names = {subtask.name for subtask in subtasks}
                parts = self.parts(turn.received.undamaged, turn.subtasks, turn.received.finish)
                undamaged |= {name: part for name, part in parts.items() if name in names}
        return Proposal(
            subtasks,
            sources[-1].purpose.context.attempt,
            tuple(calls),
            text,
            self._parts_of(sources, text, subtasks),
            self._state.sources(subtasks) if made_from is None else tuple(made_from),
            tuple([receipt for call in calls for receipt in turns[call].received.receipts]),
            undamaged,
        )

    def _parts_of(self, sources: Sequence[Turn], text: str, subtasks: tuple[Subtask, ...]) -> dict[str, ReplyPart]:
        """Return the parts of these subtasks in a text: a reply of one of the turns, or a text made from all turns, which
        counts as complete."""
        turn = next((turn for turn in sources if turn.received.text == text), None)
        if turn and turn.extracted and turn.subtasks == subtasks:
            return parts_in(turn.extracted, text, subtasks, self._format, self._tags)
        return self.parts(text, subtasks, turn.received.finish if turn else "stop")

    def _turns_behind(self, output_turn: Turn) -> list[Turn]:
        """Return the turns that led to this turn's output: the turns of its attempt, without other samples and rejected turns,
        and all turns without an output, such as a plan."""
        turns = {turn.received.call: turn for subtask in output_turn.subtasks for turn in self._by_subtask[subtask.name]}
        return [turn for _, turn in sorted(turns.items()) if turn is output_turn or self._contributes(turn, output_turn)]

    def _contributes(self, turn: Turn, output_turn: Turn) -> bool:
        """Return whether a turn led to the output of `output_turn`."""
        rejected = self._verifier.has_rejected(turn.received.call)
        if not turn.gives_output:
            return not (rejected and turn.received.call in self._proposed_calls)
        context, other = output_turn.purpose.context, turn.purpose.context
        return (context.attempt, context.sample) == (other.attempt, other.sample) and not rejected

    def _value(self, turn: Turn, subtask: Subtask) -> Json | Unreadable:
        """Return the value of the subtask in the turn's reply; None if the reply has no part for it."""
        part = self.parts(turn.received.text, turn.subtasks, turn.received.finish).get(subtask.name)
        return part.value if part else None
