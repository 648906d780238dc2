"""Drafts: the text that a reasoning model writes in tags before its answer. Drafts are recorded and counted, but never read as
the answer.

A draft ends with the last closing tag. Its opening tag can be missing, since chat templates often put that into the prompt. A
closing tag inside a JSON object that can be read, or in which the reply breaks off, is text of the answer and ends no draft;
nor does a tag inside a code block, if answers have blocks. A draft that is opened after that tag, or at the beginning of a
reply without one, and never closed takes the whole rest of the reply. A draft that is opened after an object, and that nothing
follows, is a note on the answer and ends no draft.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bench.run.answers.fenced import FenceLines
from bench.run.trial.decoding import Extracted, Objects, end_of, is_cut_off

Tags = tuple[tuple[str, str], ...]
"""Pairs of the tags that open and close a draft."""
KNOWN_TAGS: Tags = (
    ("<think>", "</think>"),  # DeepSeek, Qwen, GLM, MiniMax M2, Nemotron
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reason>", "</reason>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("[THINK]", "[/THINK]"),  # Mistral
    ("◁think▷", "◁/think▷"),  # Kimi
    ("<mm:think>", "</mm:think>"),  # MiniMax M3
    ("<seed:think>", "</seed:think>"),  # Seed
    ("<longcat_think>", "</longcat_think>"),  # LongCat
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker, Sky-T1
    ("<|channel>thought", "<channel|>"),  # Gemma 4
    ("<|channel|>analysis", "<|channel|>final<|message|>"),  # gpt-oss
    ("<|channel|>analysis", "<|channel|>final"),  # the same, where a format is named before the message
    ("assistantfinal", "assistantfinal"),  # the same, by a server that leaves out special tokens
    ("[BEGIN FINAL RESPONSE]", "[BEGIN FINAL RESPONSE]"),  # Apriel
)
"""The pairs that are looked for in the replies of every model. Where both are equal, words that can begin any reply open the
draft. Then only the tag that closes the draft is looked for."""
MAX_READS_PER_CHAR = 16
"""How often the decoder may get each character, on average. Beyond this limit no more objects are read."""
LONG_REPLY_CHARS, CACHED_REPLIES = 2**13, 8
"""What was read in a reply of more than LONG_REPLY_CHARS characters is cached, since it is needed several times. The caches
hold the last CACHED_REPLIES replies."""
_object_start, _blanks = re.compile(r"""\{\s*["'}]"""), re.compile(r"\s*")


@dataclass(frozen=True)
class Draft:
    """The draft of a reply. `end` is the place where the answer begins: the end of the text if the draft `is_open`, 0 if the
    reply has no draft."""

    end: int = 0
    is_open: bool = False


NO_DRAFT = Draft()


def draft_of(text: str, tags: Sequence[tuple[str, str]] = KNOWN_TAGS, in_blocks: bool = False) -> Draft:
    """Return a reply's draft, the text in tags before its answer (the rule is above, in this module's docstring). `in_blocks`
    says whether the answer has its code in code blocks. The time is linear in the text, and no text raises an exception."""
    find = _cached_draft if len(text) > LONG_REPLY_CHARS else _draft
    return find(text, tuple(tags), in_blocks)


def _draft(text: str, tags: Tags, in_blocks: bool) -> Draft:
    """Return a reply's draft, without the cache of `draft_of`."""
    if not any([opening in text or closing in text for opening, closing in tags]):  # noqa: C419  a list is quicker
        return NO_DRAFT
    end = _last_end(text, tags, FenceLines(text) if in_blocks else None)
    first = _blanks.match(text, end)
    if first and any(text.startswith(opening, first.end()) for opening, _ in tags):
        return Draft(len(text), is_open=True)
    return Draft(end) if end else NO_DRAFT


_cached_draft = lru_cache(maxsize=CACHED_REPLIES)(_draft)


@lru_cache(maxsize=64)
def _patterns(tags: Tags) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns: of the opening tags and of the closing tags."""
    opening, closing = ("|".join(map(re.escape, alternatives)) for alternatives in zip(*tags, strict=True))
    return re.compile(opening), re.compile(closing)


def _last_end(text: str, tags: Tags, fences: FenceLines | None) -> int:
    """Return the end of the last closing tag that ends a draft; 0 if no tag does. A tag inside an answer, or at the end of a
    note on the answer, ends no draft.

    Each object before a tag is read once. After a malformed object, reading continues where the decoder stopped, or after the
    last tag before that place. Beyond MAX_READS_PER_CHAR, each remaining tag ends a draft.
    """
    opening, closing = _patterns(tags)
    tag, objects = closing.search(text), Objects(text)
    end = position = 0
    end_before_answer, answer_end = -1, 0  # of the first object after the last draft: the draft's end, the object's end
    last = end_of(text)
    while tag:
        brace = _object_start.search(text, position, tag.start()) if objects.decoded <= MAX_READS_PER_CHAR * len(text) else None
        search_end = tag.end()
        if brace:
            result = objects.read(brace.start())
            if isinstance(result, Extracted):
                position = result.end
                if end_before_answer < end:
                    end_before_answer, answer_end = end, position
                tag = tag if position <= tag.start() else closing.search(text, position)
                continue
            if fences is None and is_cut_off(text, result, last):
                return end  # the reply breaks off in this object
            position = max(brace.start() + 1, result.at or 0)
            if position <= tag.start():
                continue
            search_end = max(search_end, position)
        position = search_end
        for match in closing.finditer(text, tag.start(), search_end):
            if fences is None or not fences.hold(match.start()):
                end = position = match.end()
                if fences:
                    fences.close()
        tag = closing.search(text, position)
    note_end = closing.search(text, answer_end) if 0 <= end_before_answer < end and last <= end else None
    return end_before_answer if note_end and opening.search(text, answer_end, note_end.start()) else end
