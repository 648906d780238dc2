"""Split a reply into parts, so that a fault can strike one part and leave the rest unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bench.record.formats import DEFAULT, AnswerFormat
from bench.run.answers.fenced import write_answer
from bench.run.answers.places import Schema
from bench.run.trial.decoding import Extracted
from bench.run.trial.drafts import KNOWN_TAGS, Tags
from bench.run.trial.effects import dump
from bench.run.trial.reading import draft_in, is_fenced, read
from bench.run.trial.reply import ReplyPart
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import Unreadable
from bench.scenario import Json, Subtask


def pieces_of(
    text: str, finish: str, subtasks: Sequence[Subtask], answer_format: AnswerFormat = DEFAULT, tags: Tags = KNOWN_TAGS
) -> Pieces:
    """Return the pieces of a reply's answer. The draft before the answer is no piece and stays unchanged."""
    extracted, draft = read(text, finish, subtasks, answer_format, tags), draft_in(text, subtasks, answer_format, tags)
    if isinstance(extracted, Unreadable):
        return Piece(text, subtasks[0].name, draft.end) if len(subtasks) == 1 else NoPieces(text)
    schema = answer_schema(subtasks) if is_fenced(subtasks, answer_format) else None
    if len(subtasks) == 1:
        return Piece(text, subtasks[0].name, draft.end, extracted, schema)
    return JsonPieces(text, extracted) if schema is None else FencedPieces(text, extracted, schema)


class NoPieces:
    """A reply to several subtasks that cannot be read: no part of it can be struck."""

    def __init__(self, text: str):
        self.text = text

    def part(self, name: str) -> ReplyPart | None:
        del name
        return None

    def put(self, name: str, text: str, ends_reply: bool) -> None:
        del text, ends_reply
        raise KeyError(name)


class Piece:
    """A reply to one subtask. Its only part is the answer without the text around it, or all text after the draft if the answer
    cannot be read."""

    def __init__(self, text: str, name: str, draft: int, extracted: Extracted | None = None, schema: Schema | None = None):
        self.text, self._name, self._schema, self._draft = text, name, schema, text[:draft]
        self._before, self._after = (text[: extracted.start], text[extracted.end :]) if extracted else (self._draft, "")
        self._part = (
            ReplyPart(text[extracted.start : extracted.end], extracted.value) if extracted else ReplyPart(text[draft:], None)
        )

    def part(self, name: str) -> ReplyPart | None:
        return self._part if name == self._name else None

    def put(self, name: str, text: str, ends_reply: bool) -> None:
        """Replace the answer by this text. A text that is no JSON object replaces all text after the draft. With `ends_reply`,
        the reply ends after this text."""
        del name
        value = None if ends_reply else _object(text)
        if self._schema and value is not None:
            text = write_answer(value, self._schema).text
        if ends_reply:
            self._after = ""
        elif not text.startswith("{"):  # the text is empty or prose
            self._before, self._after = self._draft, ""
        self.text = self._before + text + self._after


class JsonPieces:
    """A reply to several subtasks: one JSON object with a field for each subtask."""

    def __init__(self, text: str, extracted: Extracted):
        self._whole, self._values = text, extracted.value
        self._before, self._after = text[: extracted.start], text[extracted.end :]
        self._texts = {name: dump(value) for name, value in extracted.value.items()}
        self._changed = self._ended = False

    def part(self, name: str) -> ReplyPart | None:
        return ReplyPart(self._texts[name], self._values[name]) if name in self._texts else None

    def put(self, name: str, text: str, ends_reply: bool) -> None:
        """Replace the JSON of a part by this text. With `ends_reply`, the reply ends after this text."""
        self._changed = True
        self._texts[name] = text
        if ends_reply:
            self._texts = _items_up_to(name, self._texts)
            self._ended = True

    @property
    def text(self) -> str:
        """The reply with the changed parts; cut off after the last part if a strike ended the reply there."""
        if not self._changed:
            return self._whole
        return self._before + _open_object(self._texts) + ("" if self._ended else "}" + self._after)


class FencedPieces:
    """A reply to several subtasks with code blocks: one object with the JSON of all parts, then the blocks of all parts."""

    def __init__(self, text: str, extracted: Extracted, schema: Schema):
        self._whole, self._values, self._schema = text, extracted.value, schema
        self._before, self._after = text[: extracted.start], text[extracted.end :]
        self._texts, self._blocks = dict[str, str](), dict[str, str]()
        for name, value in extracted.value.items():
            self._write(name, value)
        self._changed = self._json_ended = self._ended = False

    def part(self, name: str) -> ReplyPart | None:
        return ReplyPart(self._texts[name] + self._blocks[name], self._values[name]) if name in self._texts else None

    def put(self, name: str, text: str, ends_reply: bool) -> None:
        """Replace a part by this text: its JSON and its blocks. With `ends_reply`, the reply ends after this text."""
        self._changed = True
        if ends_reply:
            self._end(name, text)
        elif (value := _object(text)) is not None:
            self._write(name, value)
        else:
            self._texts[name], self._blocks[name] = text, ""

    def _write(self, name: str, value: Json) -> None:
        answer = write_answer({name: value}, self._schema)
        self._texts[name], self._blocks[name] = dump(answer.value[name]), "".join(answer.blocks.values())

    def _end(self, name: str, text: str) -> None:
        """Cut the reply off in the JSON or in the blocks of this part."""
        length = len(self._texts[name])
        if len(text) > length:
            self._blocks = _items_up_to(name, {**self._blocks, name: text[length:]})
            self._ended = True
        else:
            self._texts = _items_up_to(name, {**self._texts, name: text})
            self._json_ended = True

    @property
    def text(self) -> str:
        """The reply with the changed parts; cut off in its JSON, or in its blocks, if a strike ended the reply there."""
        if not self._changed:
            return self._whole
        if self._json_ended:
            return self._before + _open_object(self._texts)
        blocks = "".join(self._blocks.values())
        return self._before + _open_object(self._texts) + "}" + blocks + ("" if self._ended else self._after)


Pieces = NoPieces | Piece | JsonPieces | FencedPieces
"""The pieces of a reply's answer. `part` returns a subtask's part as the model wrote it; None if the reply has none. `put`
replaces the part by a text, and cuts the rest of the reply off with `ends_reply`. `text` is the reply with these changes."""


def _object(text: str) -> dict[str, Json] | None:
    """Return the value of a text that is one JSON object; None if the text is no JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _open_object(texts: Mapping[str, str]) -> str:
    """Return a JSON object of these fields without its closing brace."""
    return "{" + ", ".join(f"{dump(name)}: {text}" for name, text in texts.items())


def _items_up_to(name: str, texts: dict[str, str]) -> dict[str, str]:
    """Return the items up to and including `name`."""
    names = list(texts)
    return {key: texts[key] for key in names[: names.index(name) + 1]}
