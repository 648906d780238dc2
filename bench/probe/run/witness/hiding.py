"""The values that the owner hides: each is replaced by a digest, wherever it stands under a hidden name.

A name is a column, an argument, a member of JSON, or a parameter of a URL or a form. In a text a member is found by its quoted
name and a colon, so that JSON after prose, JSON on several lines, and JSON that is cut off is searched too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote_plus, unquote_plus

from pydantic import JsonValue

HIDDEN_MARK = "(hidden)"
_DIGEST = re.compile(r"\(hidden\) [0-9a-f]{32}")
MAX_SEARCHED = 32
"""How many times the length of a text is searched, since a text in quotes or in a URL can contain a text again."""
_MAX_CHARS_PER_CHARACTER = 12
"""The most characters that write one character of a name: two escapes of JSON, or four of a URL."""
_TEXT = r"""(?:"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z))"""
"""Matches a quoted text, to the end if its second quote is missing."""
_TOKEN = re.compile(rf"{_TEXT}|[][{{}}]", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)("|\\?\Z)', re.DOTALL)
_SCALAR = re.compile(r"[^],}\r\n]*+")
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_FORM = re.compile(r"[^\s=&?\"{[]++=[^&\n]*+(?:&[^&\n]*+)*+")
_URL_VALUE = re.compile(r"[^\s&#\"]*+")
_URL_VALUE_TO_NEXT_QUERY = re.compile(r"[^\s&#?\"]*+")
_FORM_VALUE = re.compile(r"[^&\n]*+")
_DEPTHS = {"{": 1, "[": 1, "}": -1, "]": -1}


@dataclass
class _Budget:
    """How many characters may still be searched."""

    characters: int


class HiddenNames:
    """Replaces hidden values by digests. Equal values have equal digests under one key, and only the key's holder can test a
    guess.

    Args:
        names: The hidden names. Case is ignored.
        key: The key of the digests.
    """

    def __init__(self, names: Iterable[str] = (), key: bytes = b"") -> None:
        self._names = frozenset(map(str.casefold, names))
        self._key = hashlib.blake2b(key, digest_size=32).digest()
        most = _MAX_CHARS_PER_CHARACTER * max(map(len, self._names), default=1)
        self._member = re.compile(
            rf"""(?:"(?P<json>(?:[^"\\]|\\.){{0,{most}}}+)"|'(?P<python>(?:[^'\\]|\\.){{0,{most}}}+)')\s*+:\s*+""", re.DOTALL
        )
        self._url_field = re.compile(rf"(?:^|[?&])([^\s?&=#\"]{{1,{most}}}+)=")
        self._form_field = re.compile(rf"(?:^|&)([^&=]{{1,{most}}}+)=")

    def __bool__(self) -> bool:
        return bool(self._names)

    def has(self, name: str) -> bool:
        """Return whether the values under a name are hidden."""
        return name.casefold() in self._names

    def digest(self, value: object) -> str:
        """Return the digest that replaces a hidden value; the value itself if it is a digest already."""
        if isinstance(value, str) and _DIGEST.fullmatch(value):
            return value
        try:
            content = json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else repr(value)
        except RecursionError:
            content = "nested too deeply"
        encoded = content.encode("utf-8", "surrogatepass")
        return f"{HIDDEN_MARK} {hashlib.blake2b(encoded, digest_size=16, key=self._key).hexdigest()}"

    def hide_in(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with digests in place of hidden values, also in its texts. Raises RecursionError."""
        if not self._names:
            return value
        if isinstance(value, dict):
            return {name: self.digest(inner) if self.has(name) else self.hide_in(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.hide_in(inner) for inner in value]
        return self.hide_in_text(value) if isinstance(value, str) else value

    def hide_in_text(self, text: str) -> str:
        """Return a text with digests in place of the hidden members of JSON and of Python's dictionaries, and of the hidden
        parameters of URLs and forms. All else is unchanged. What is in too many layers of escapes is one digest."""
        return self._hide_in(text, _Budget(MAX_SEARCHED * len(text) + 1000)) if self._names else text

    def _hide_in(self, text: str, budget: _Budget) -> str:
        """Return a text without hidden values; its digest if the budget is spent."""
        folded = text.casefold()
        if not any(name in folded for name in self._names) and not any(sign in text for sign in "\\%+"):
            return text
        budget.characters -= len(text)
        if budget.characters < 0:
            return self.digest(text)
        text = self._hide_members(text, budget)
        text = self._hide_fields(self._form_field, _FORM_VALUE, _FORM_VALUE, text, budget) if _FORM.fullmatch(text) else text
        return self._hide_fields(self._url_field, _URL_VALUE, _URL_VALUE_TO_NEXT_QUERY, text, budget)

    def _hide_members(self, text: str, budget: _Budget) -> str:
        """Return a text without hidden members. A text in quotes may contain JSON again, with escapes."""
        parts, end = list[str](), 0
        for quote in re.finditer("[\"']", text):
            start, mark = quote.start(), quote[0]
            if start < end:
                continue
            if (member := self._member.match(text, start)) and self.has(_unescape(member["json"] or member["python"] or "")):
                parts.append(text[end : member.end()])
                end = _end_of_value(text, member.end())
                if value := text[member.end() : end]:
                    parts.append(f"{mark}{self.digest(_parse(value))}{mark}")
            elif mark == '"' and text[start - 1 : start] != "\\" and (quoted := _QUOTED.match(text, start)):
                plain = _unescape(quoted[1]) if "\\" in quoted[1] or "=" in quoted[1] else ""
                if (hidden := self._hide_in(plain, budget)) != plain:
                    parts += [text[end : start + 1], json.dumps(hidden)[1:-1], quoted[2]]
                    end = quoted.end()
        return "".join([*parts, text[end:]])

    def _hide_fields(
        self, start: re.Pattern[str], value: re.Pattern[str], inner: re.Pattern[str], text: str, budget: _Budget
    ) -> str:
        """Return a text without the hidden values of the fields of a URL or a form.

        Args:
            start: Matches a field up to its equals sign. Group 1 is its name.
            value: Matches the value of a field with a hidden name.
            inner: Matches what is searched of the value of another field, if it has escapes.
            text: The text.
            budget: What may still be searched.
        """
        parts, end = list[str](), 0
        for field in start.finditer(text):
            if field.start() < end:
                continue
            is_hidden = self.has(unquote_plus(field[1]))
            match = (value if is_hidden else inner).match(text, field.end())
            if not match or not (is_hidden or "%" in match[0]):
                continue
            plain = unquote_plus(match[0])
            hidden = self.digest(plain) if is_hidden else self._hide_in(plain, budget)
            if hidden != plain:
                parts += [text[end : field.end()], quote_plus(hidden, safe="()")]
                end = match.end()
        return "".join([*parts, text[end:]])


def _end_of_value(text: str, start: int) -> int:
    """Return the end of the JSON value at a place in a text; the end of the text if the value is cut off."""
    first = text[start : start + 1]
    if first not in ('"', "'", "{", "["):
        scalar = _SCALAR.match(text, start)
        return start + len(scalar[0].rstrip()) if scalar else start
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += _DEPTHS.get(token[0], 0)
        if depth <= 0:
            return token.end()
    return len(text)


def _unescape(content: str) -> str:
    """Return the text between two quotes without the escapes of JSON. An escape that is cut off is left out."""
    for text in (content, _CUT_ESCAPE.sub("", content)):
        try:
            return str(json.loads(f'"{text}"', strict=False))
        except ValueError:
            pass
    return re.sub(r"\\(.)", r"\1", content, flags=re.DOTALL)


def _parse(text: str) -> object:
    """Return a JSON value; the text itself if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
