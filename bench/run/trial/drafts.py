"""Drafts: what a reasoning model writes in tags before its answer. They are recorded and counted, but never read as the answer.

A draft ends with the last closing tag. Its opening tag can be missing, since chat templates often put that into the prompt. A
closing tag inside a JSON object that can be read, or in which the reply breaks off, is text of the answer and ends no draft;
nor does a tag inside a code block, if answers have blocks. A draft that is opened after that tag, or at the beginning of a
reply without one, and never closed takes the whole rest of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bench.run.answers.fenced import FenceLines
from bench.run.trial.decoding import Extracted, Objects, end_of, ran_out

Tags = tuple[tuple[str, str], ...]
"""Pairs of the tags that open and close a draft."""
THINK: Tags = (("<think>", "</think>"),)
MOST_SHOWN = 16
"""How often each character may be shown to the decoder, on average, before reading costs too much."""
LONG, KEPT = 2**13, 8
"""A reply with more characters is kept after reading, since it is read several times; and the number of replies kept."""
_begins, _blanks = re.compile(r"""\{\s*["'}]"""), re.compile(r"\s*")


@dataclass(frozen=True)
class Draft:
    """A draft. `end` is where the answer begins: the end of the text if the draft `is_open`, 0 if there is no draft."""

    end: int = 0
    is_open: bool = False


NO_DRAFT = Draft()


def draft_of(text: str, tags: Sequence[tuple[str, str]] = THINK, in_blocks: bool = False) -> Draft:
    """Return the draft by the rule above, in time linear in the text. Never raises.

    in_blocks   whether the answer has its code in code blocks
    """
    draft_in = _draft_once if len(text) > LONG else _draft
    return draft_in(text, tuple(tags), in_blocks)


def _draft(text: str, tags: Tags, in_blocks: bool) -> Draft:
    if not any([opening in text or closing in text for opening, closing in tags]):  # noqa: C419  a list is quicker
        return NO_DRAFT
    end = _last_end(text, _closing(tags), FenceLines(text) if in_blocks else None)
    first = _blanks.match(text, end)
    if first and any(text.startswith(opening, first.end()) for opening, _ in tags):
        return Draft(len(text), is_open=True)
    return Draft(end) if end else NO_DRAFT


_draft_once = lru_cache(maxsize=KEPT)(_draft)


@lru_cache(maxsize=64)
def _closing(tags: Tags) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(closing) for _, closing in tags))


def _last_end(text: str, closing: re.Pattern[str], fences: FenceLines | None) -> int:
    """Return where the last closing tag ends that is no text of an answer; 0 if there is none.

    Each object before a tag is read once. After a malformed one, reading continues where it stopped, or after the last tag that
    it passed. Once reading costs too much, each remaining tag ends a draft.
    """
    tag, objects = closing.search(text), Objects(text)
    end = at = 0
    last = end_of(text)
    while tag:
        brace = _begins.search(text, at, tag.start()) if objects.shown <= MOST_SHOWN * len(text) else None
        stopped = tag.end()
        if brace:
            read = objects.read(brace.start())
            if isinstance(read, Extracted):
                at = read.end
                tag = tag if at <= tag.start() else closing.search(text, at)
                continue
            if fences is None and ran_out(text, read, last):
                return end  # the reply breaks off in this object
            at = max(brace.start() + 1, read.at or 0)
            if at <= tag.start():
                continue
            stopped = max(stopped, at)
        at = stopped
        for passed in closing.finditer(text, tag.start(), stopped):
            if fences is None or not fences.hold(passed.start()):
                end = at = passed.end()
                if fences:
                    fences.close()
        tag = closing.search(text, at)
    return end
