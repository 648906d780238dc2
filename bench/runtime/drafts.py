"""Drafts: what a reasoning model writes in tags before its answer, which is recorded and counted and never read as the answer.

A draft ends with the last closing tag; whether its opening tag is there does not matter, since chat templates often put that
into the prompt. A closing tag inside a JSON object that can be read, or that the reply breaks off in, is text of the answer and
ends no draft; so is a tag inside a code block, where answers have blocks. A draft that is opened behind that tag, or at the
beginning of a reply without one, and never closed takes the whole rest of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bench.answers.fenced import FenceLines
from bench.runtime.decoding import Extracted, Objects, end_of, ran_out

Tags = tuple[tuple[str, str], ...]
"""Pairs: what opens a draft, and what closes it."""
THINK: Tags = (("<think>", "</think>"),)
MOST_SHOWN = 16
"""How often each character of a text is shown to the decoder, on average, before reading is too dear."""
LONG, KEPT = 2**13, 8
"""Characters of a reply from which on what was read in it is kept, and of how many replies: it is read several times."""
_begins, _blanks = re.compile(r"""\{\s*["'}]"""), re.compile(r"\s*")


@dataclass(frozen=True)
class Draft:
    """`end` is where the answer begins: the end of the text where the draft `is_open`, 0 where there is no draft."""

    end: int = 0
    is_open: bool = False


NO_DRAFT = Draft()


def draft_of(text: str, tags: Sequence[tuple[str, str]] = THINK, in_blocks: bool = False) -> Draft:
    """Find the draft by the rule above, in time that grows as the text does. Never raises.

    in_blocks   the answer has its code in code blocks
    """
    draft_in = _draft_once if len(text) > LONG else _draft
    return draft_in(text, tuple(tags), in_blocks)


def _draft(text: str, tags: Tags, in_blocks: bool) -> Draft:
    if not any(tag in text for pair in tags for tag in pair):
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
    """Where the last closing tag ends that is no text of an answer; 0 where there is none.

    Each object before a tag is read once. Behind a malformed one, reading goes on where that one stopped, or behind the last
    tag that it had passed. Where reading has become dear, each tag that is left ends a draft.
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
