"""The formats in which an answer is requested and read."""

from __future__ import annotations

from typing import Literal, get_args

AnswerFormat = Literal["json", "schema", "fenced"]
"""json     one JSON object, asked for in words
schema   the same words, and the endpoint holds the model to the JSON schema
fenced   the code is in code blocks after the JSON, so that it need not be escaped"""
ANSWER_FORMATS: tuple[AnswerFormat, ...] = get_args(AnswerFormat)
DEFAULT: AnswerFormat = "json"
