"""A reply seen as the subtasks' parts: the whole where one was asked for, else a field of its object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.runtime.effects import dump
from bench.runtime.verification import Unreadable, extract
from bench.scenario import Json, Subtask


@dataclass(frozen=True)
class Part:
    """One subtask's share of a reply: its text, and the JSON in it or why there is none to be read."""

    text: str
    value: Json | Unreadable


def parts_of(text: str, finish: str, subtasks: Sequence[Subtask]) -> dict[str, Part]:
    """Read a reply's parts by the boundary's rule; where it cannot be read, every part is the whole text."""
    found = extract(text, finish)
    if isinstance(found, Unreadable):
        return {subtask.name: Part(text, found) for subtask in subtasks}
    if len(subtasks) == 1:
        return {subtasks[0].name: Part(dump(found.value), found.value)}
    names = [subtask.name for subtask in subtasks if subtask.name in found.value]
    return {name: Part(dump(found.value[name]), found.value[name]) for name in names}


def reads_as(text: str, finish: str, subtask: Subtask, among: Sequence[Subtask]) -> bool:
    """Whether a reply reads as this subtask's output, good or bad, and not as something else, such as an agent's plan.

    It does where its JSON object has a field of the output, or where it is no words and no JSON that could be read.
    """
    extracted = extract(text, finish)
    if isinstance(extracted, Unreadable):
        return not extracted.is_prose
    value = extracted.value.get(subtask.name) if len(among) > 1 else extracted.value
    return isinstance(value, dict) and not value.keys().isdisjoint(subtask.output.model_fields)


def reread(text: str) -> Part:
    """The part that a text in the state is, after something may have happened to it."""
    found = extract(text)
    return Part(text, found if isinstance(found, Unreadable) else found.value)


class Pieces:
    """A reply taken apart so that a fault can strike one part of it and leave the rest as it was."""

    def __init__(self, text: str, finish: str, subtasks: Sequence[Subtask]):
        self._whole, self._single = text, len(subtasks) == 1
        found = extract(text, finish)
        self._changed = self._ended = False
        if isinstance(found, Unreadable):
            self._before = self._after = ""
            self._values: dict[str, Json] = {}
            self._texts = {subtasks[0].name: text} if self._single else {}
            return
        self._before, self._after = text[: found.start], text[found.end :]
        if self._single:
            self._values = {subtasks[0].name: found.value}
            self._texts = {subtasks[0].name: text[found.start : found.end]}
        else:
            self._values = dict(found.value)
            self._texts = {name: dump(value) for name, value in found.value.items()}

    def part(self, name: str) -> Part | None:
        """The part as the model wrote it; None where the reply has none."""
        return Part(self._texts[name], self._values.get(name)) if name in self._texts else None

    def put(self, name: str, text: str, ends_reply: bool) -> None:
        self._changed = True
        self._texts[name] = text
        if self._single and not text.startswith("{"):  # nothing, or words, in place of the JSON: that is the whole reply
            self._before = self._after = ""
        if ends_reply:
            names = list(self._texts)
            self._texts = {kept: self._texts[kept] for kept in names[: names.index(name) + 1]}
            self._after = ""
            self._ended = True

    @property
    def text(self) -> str:
        if not self._changed:
            return self._whole
        if self._single:
            body = next(iter(self._texts.values()))
        else:
            body = "{" + ", ".join(f"{dump(name)}: {text}" for name, text in self._texts.items())
            body += "" if self._ended else "}"
        return self._before + body + self._after
