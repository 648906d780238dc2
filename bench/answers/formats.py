"""In which form an answer is asked for, and read."""

from __future__ import annotations

from typing import Literal

AnswerFormat = Literal["json", "schema", "fenced"]
"""json     one JSON object, asked for in words
schema   the same words, and the endpoint holds the model to the JSON schema
fenced   code stands in code blocks behind the JSON, so that it need not be escaped
"""
DEFAULT: AnswerFormat = "json"
