"""A trial in the form in which other programs see an agent: its calls in order, with the texts that were sent and received."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from bench.common.errors import ResultsError, whole_text
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import records_of
from bench.read.render.labels import model_label
from bench.record.events import Called
from bench.record.messages import Message, StoredMessage
from bench.record.reading import read_texts
from bench.record.record import TrialRecord
from bench.record.tool_calls import ToolCall, calls_in


@dataclass(frozen=True)
class SentCall:
    """One call of the model, with its texts.

    number    the index of its event among the trial's events
    request   a name that is unique in the run: the trial, the call and the try
    reply     the text that the architecture got; None if nothing came
    """

    number: int
    request: str
    event: Called
    messages: tuple[Message, ...]
    reply: str | None
    tool_calls: tuple[ToolCall, ...]

    @property
    def tokens(self) -> tuple[int, int]:
        """The numbers of tokens read and written, by the provider's count if it is complete, else by ours."""
        call = self.event
        if call.usage_in is not None and call.usage_out is not None:
            return call.usage_in, call.usage_out
        return call.tokens_in, call.tokens_out

    @property
    def counted_by(self) -> str:
        """Whose count `tokens` is: "provider", or the name of our tokenizer."""
        return "cl100k_base" if None in (self.event.usage_in, self.event.usage_out) else "provider"


@dataclass(frozen=True)
class TrialTexts:
    """A trial with its texts by digest. `label` is the model's name for readers, `began` the start of the run."""

    run: str
    record: TrialRecord
    texts: Mapping[str, str]
    label: str
    is_simulated: bool
    began: datetime

    @cached_property
    def calls(self) -> list[SentCall]:
        """The calls of the model, with their texts, in order."""
        return [self._sent_call(number, event) for number, event in enumerate(self.record.events) if isinstance(event, Called)]

    @property
    def error(self) -> str:
        """Why the trial ended in an error; "" if it did not."""
        return (self.record.reason or "error") if self.record.outcome == "error" else ""

    @property
    def attributes(self) -> dict[str, str | int | float | bool]:
        """The names and the result of the trial, as flat values, which a span's attributes must be."""
        record = self.record
        return {
            "run": self.run,
            "trial": record.id,
            "scenario": record.scenario,
            "instance": record.instance,
            "architecture": record.architecture,
            "model": self.label,
            "plan": record.plan,
            "repetition": record.repetition,
            "outcome": record.outcome,
            "reason": record.reason,
            "tokens": record.tokens,
            "timing": record.timing,
            "simulated": self.is_simulated,
        }

    def text(self, digest: str) -> str:
        """Return the text of this digest. Raises ResultsError if it is missing."""
        if digest not in self.texts:
            raise ResultsError(f"trial {self.record.id}: the text {digest} is missing; restore the run from a copy")
        return whole_text(self.texts[digest])

    def _sent_call(self, number: int, event: Called) -> SentCall:
        """Return a call with its texts. `number` is the index of its event."""
        reply_digest = event.delivered or event.reply
        calls = calls_in(self.text(event.tool_calls)) if event.tool_calls and not event.delivered else ()
        request = f"{self.record.id}/{event.call}/{event.try_}"
        reply = reply_digest and self.text(reply_digest)
        return SentCall(number, request, event, tuple(map(self._message, event.messages)), reply, calls)

    def _message(self, message: StoredMessage) -> Message:
        calls = calls_in(self.text(message.tool_calls)) if message.tool_calls else ()
        return Message(message.role, self.text(message.content), calls, message.tool_call_id)


def trials_of(run: Run) -> Iterator[TrialTexts]:
    """Yield each trial of a run, in the order of the run's frame. Raises ResultsError if a text cannot be read, or if the run
    was merged from several, which are exported one by one."""
    records = records_of(run)
    if records is None or run.folder is None:
        raise ResultsError(f"{run.name}: has no folder that its texts could be read from; export its parts one by one")
    latest = {record.id: record for record in records}
    texts, labels = read_texts(run.folder), {model: model_label(run, model) for model in run.names("model")}
    began = datetime.fromisoformat(run.manifest.started) if run.manifest.started else datetime(1970, 1, 1, tzinfo=UTC)
    for trial in run.trials["trial"]:
        record = latest[trial]
        yield TrialTexts(run.name, record, texts, labels[record.model], run.is_simulated(record.model), began)


def fields_of(event: Any) -> dict[str, Any]:
    """Return the fields of an event that are not None, as values for JSON."""
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(event).items()}
    return {key: value for key, value in values.items() if value is not None and key != "kind"}
