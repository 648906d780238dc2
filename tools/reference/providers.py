"""What providers say of how a completion ended, or of why there is none, and what it is to a trial: Markdown tables."""

from __future__ import annotations

from bench.run.openai.words import PHRASES, ROWS, WordMeaning

MEANING: dict[WordMeaning, str] = {
    "answer": "the model answered; without a text, its reply is **empty**",
    "cut_off": "the reply was **cut off** at a limit",
    "refusal": "a **refusal**, by the model or a filter",
    "own": "the model's own reply, mostly **empty**: its server could not use what it wrote",
    "rate_limit": "a **passing** failure: tried again, with fewer calls at a time",
    "passing": "a **passing** failure: tried again",
    "lasting": "a **lasting** failure: the trial is an error",
    "used_up": "a **lasting** failure: the account is empty, and the run stops",
}


def page() -> str:
    head = ["| where | word | said by | what it is |", "| --- | --- | --- | --- |"]
    where = {"finish_reason": "`finish_reason`", "error": "an error"}
    rows = [
        f"| {where[row.place]} | {', '.join(f'`{word}`' for word in row.words)} | {row.said_by} | {MEANING[row.event]} |"
        for row in ROWS
    ]
    rows += [f'| an error\'s message | "{phrase}" | {said_by} | {MEANING["refusal"]} |' for phrase, said_by in PHRASES.items()]
    return "\n".join((*head, *rows))
