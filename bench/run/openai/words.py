"""The words with which providers say why a completion ended, or why there is none, and the meaning of each word for a trial.

Only a word's letters and digits count: `FinishReason.MAX_TOKENS`, `max-tokens` and `maxTokens` are the same word. An unknown
word never counts as an answer: as a finish reason it is a failure of its own kind, and as an error's code a failure that may
pass. docs/providers.md shows the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

WordMeaning = Literal["answer", "cut_off", "refusal", "own", "rate_limit", "passing", "lasting", "used_up"]
"""What a word says about a call.

answer      the model answered; without a text, its reply is empty
cut_off     the reply ends at a limit
refusal     the model, or the filter before it, declines
own         the model's output was unusable for its server: this counts as a reply, mostly an empty one
rate_limit  the endpoint refuses for now, and wants fewer calls
passing     the endpoint failed, and may not fail again
lasting     the endpoint refuses what is asked
used_up     the account is empty
"""
WordPlace = Literal["finish_reason", "error"]
"""The field with the word: a completion's finish reason, or the code, type or status of an error."""
MAX_WORD_CHARS = 200
"""Characters of the longest word that is looked up."""


@dataclass(frozen=True)
class Synonyms:
    """Words with the same meaning, and some of the providers, servers and gateways that use them."""

    event: WordMeaning
    place: WordPlace
    words: tuple[str, ...]
    said_by: str


ROWS = (
    Synonyms("answer", "finish_reason", ("stop", "tool_calls", "function_call"), "OpenAI"),
    Synonyms("answer", "finish_reason", ("end_turn", "stop_sequence", "tool_use"), "Anthropic, Bedrock"),
    Synonyms("answer", "finish_reason", ("complete", "tool_call"), "Cohere"),
    Synonyms(
        "answer",
        "finish_reason",
        ("eos", "eos_token", "stop_token", "end", "endoftext"),
        "Together, TGI, watsonx, AI21, gateways",
    ),
    Synonyms("answer", "finish_reason", ("eosFound", "stopStringFound", "normal", "completed"), "LM Studio, Qianfan, gateways"),
    Synonyms("cut_off", "finish_reason", ("length", "model_length"), "OpenAI, Mistral"),
    Synonyms("cut_off", "finish_reason", ("max_tokens", "max_output_tokens", "token_limit"), "Anthropic, Gemini, watsonx"),
    Synonyms(
        "cut_off", "finish_reason", ("model_context_window_exceeded", "pause_turn", "error_limit"), "Anthropic, Z.ai, Cohere"
    ),
    Synonyms("cut_off", "finish_reason", ("maxPredictedTokensReached", "contextLengthReached"), "LM Studio"),
    Synonyms("cut_off", "finish_reason", ("repetition", "repeat"), "vLLM, Moonshot, which end a reply that repeats itself"),
    Synonyms("refusal", "finish_reason", ("content_filter", "refusal", "content_filtered"), "OpenAI, Anthropic, Bedrock"),
    Synonyms(
        "refusal", "finish_reason", ("guardrail_intervened", "sensitive", "error_toxic"), "Bedrock, Z.ai, Hunyuan, Cohere"
    ),
    Synonyms(
        "refusal", "finish_reason", ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "Gemini"
    ),
    Synonyms(
        "refusal", "finish_reason", ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "MODEL_ARMOR", "blocked", "flagged"), "Gemini"
    ),
    Synonyms("own", "finish_reason", ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), "Gemini"),
    Synonyms("own", "finish_reason", ("malformed_response", "malformed_model_output", "malformed_tool_use"), "Gemini, Bedrock"),
    Synonyms(
        "passing", "finish_reason", ("error", "abort", "aborted", "failed", "timeout"), "OpenRouter, vLLM, SGLang, Cohere"
    ),
    Synonyms(
        "passing", "finish_reason", ("cancel", "cancelled", "canceled", "user_cancel", "interrupted"), "TGI, watsonx, Cohere"
    ),
    Synonyms(
        "passing", "finish_reason", ("insufficient_system_resource", "network_error", "time_limit"), "DeepSeek, Z.ai, watsonx"
    ),
    Synonyms("passing", "finish_reason", ("load", "unload", "modelUnloaded", "userStopped"), "Ollama, LM Studio"),
    Synonyms("passing", "finish_reason", ("other", "unknown", "FINISH_REASON_UNSPECIFIED", "not_finished"), "Gemini, gateways"),
    Synonyms("passing", "finish_reason", ("overloaded", "server_error", "internal_error"), "gateways"),
    Synonyms(
        "refusal", "error", ("content_filter", "ResponsibleAIPolicyViolation", "content_policy_violation"), "Azure, Moonshot"
    ),
    Synonyms("refusal", "error", ("invalid_prompt", "prompt_blocked", "moderation_blocked"), "OpenAI"),
    Synonyms(
        "refusal", "error", ("data_inspection_failed", "1301", "base_resp 1026", "base_resp 1027"), "DashScope, Z.ai, MiniMax"
    ),
    Synonyms("refusal", "error", ("SensitiveContentDetected", "InputTextSensitiveContentDetected"), "Volcengine"),
    Synonyms("refusal", "error", ("OutputTextSensitiveContentDetected", "PROHIBITED_CONTENT", "SAFETY"), "Volcengine, Gemini"),
    Synonyms("own", "error", ("tool_use_failed", "json_validate_failed"), "Groq, with the reply in failed_generation"),
    Synonyms("used_up", "error", ("insufficient_quota", "billing_hard_limit_reached", "billing_error"), "OpenAI, Anthropic"),
    Synonyms(
        "used_up",
        "error",
        ("insufficient_user_quota", "exceeded_current_quota_error", "base_resp 1008"),
        "one-api, Moonshot, MiniMax",
    ),
    Synonyms(
        "used_up", "error", ("insufficient_balance", "Arrearage", "AccountOverdueError", "1113"), "DashScope, Volcengine, Z.ai"
    ),
    Synonyms("rate_limit", "error", ("rate_limit_exceeded", "rate_limit_error", "too_many_requests"), "OpenAI, Anthropic"),
    Synonyms(
        "rate_limit", "error", ("RESOURCE_EXHAUSTED", "rate_limit_reached_error", "engine_overloaded_error"), "Gemini, Moonshot"
    ),
    Synonyms("rate_limit", "error", ("Throttling", "ThrottlingException", "limit_requests"), "DashScope, Bedrock"),
    Synonyms("rate_limit", "error", ("base_resp 1002", "base_resp 1039", "1302", "1303", "1305"), "MiniMax, Z.ai"),
    Synonyms("passing", "error", ("server_error", "internal_error", "internal_server_error", "api_error"), "OpenAI, Anthropic"),
    Synonyms("passing", "error", ("overloaded_error", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"), "Anthropic, Gemini"),
    Synonyms("lasting", "error", ("invalid_request_error", "invalid_argument", "bad_request_error"), "OpenAI, Gemini"),
    Synonyms("lasting", "error", ("authentication_error", "invalid_api_key", "unauthenticated"), "OpenAI, Anthropic, Gemini"),
    Synonyms("lasting", "error", ("permission_error", "permission_denied", "failed_precondition"), "Anthropic, Gemini"),
    Synonyms("lasting", "error", ("not_found_error", "not_found", "model_not_found"), "OpenAI, Anthropic, Gemini"),
    Synonyms("lasting", "error", ("context_length_exceeded", "unsupported_parameter", "unsupported_value"), "OpenAI"),
    Synonyms("lasting", "error", ("base_resp 1004", "base_resp 2013", "base_resp 2049"), "MiniMax"),
)
PHRASES = {
    "content management policy": "Azure",
    "violates usage guidelines": "xAI, with the code permission-denied, which it also gives for a key's rights",
    "your input was flagged": "OpenRouter",
    "flagged as potentially violating": "OpenAI",
    "DataInspectionFailed": "DashScope, through gateways",
    "ContentPolicyViolationError": "LiteLLM",
}
"""Words in an error's message that mean a refusal even if its code does not say so, with the providers that write them."""

STATUSES: Mapping[WordMeaning, Callable[[int], bool]] = {
    "rate_limit": lambda status: status == 429,
    "used_up": lambda status: status == 402,
    "lasting": lambda status: 400 <= status < 500 and status not in (408, 409, 425),
    "passing": lambda _: True,
}
"""Meaning -> the test of an HTTP status that has this meaning, if no word of the error says more. The first test that holds
counts. OpenAI's own clients repeat 408, when the server did not get the whole request, and 409, when something is locked; 425
is too early."""


def _squeeze(word: str) -> str:
    """Return a word in lower case, with its letters and digits alone."""
    return re.sub(r"[\W_]+", "", word).lower().removeprefix("finishreason")


def _words(place: WordPlace) -> Mapping[str, WordMeaning]:
    """Return the meanings of all words at this place, by their squeezed spelling."""
    return {_squeeze(word): row.event for row in ROWS if row.place == place for word in row.words}


_FINISH_MEANINGS, _ERROR_MEANINGS = _words("finish_reason"), _words("error")
_PHRASES = tuple(phrase.lower() for phrase in PHRASES)
_PRECEDENCE: tuple[WordMeaning, ...] = ("refusal", "own", "used_up", "rate_limit")
"""If the words of an error have several meanings, the first of these counts."""


def word_in(value: object) -> str:
    """Return the word in a field; "" if the field is no text, or a text that stands for no word, such as `null`."""
    word = value.strip() if isinstance(value, str) else ""
    return "" if word.lower() in ("null", "none") else word


def finish_event(word: str) -> WordMeaning | None:
    """Return the meaning of a finish reason; None for an unknown word. Of two words, as in
    `content_filter: PROHIBITED_CONTENT`, each is looked up."""
    return next((_FINISH_MEANINGS[spelling] for spelling in _spellings(word) if spelling in _FINISH_MEANINGS), None)


def error_event(words: Iterable[str], message: str = "", status: int = 0) -> WordMeaning:
    """Return the meaning of an error by its codes, types and statuses, by phrases in its message, and by its HTTP status (0 for
    none). An unknown error counts as passing."""
    meanings = [_ERROR_MEANINGS[spelling] for word in words for spelling in _spellings(word) if spelling in _ERROR_MEANINGS]
    if any(phrase in message.lower() for phrase in _PHRASES):
        meanings.append("refusal")
    if decisive := next((meaning for meaning in _PRECEDENCE if meaning in meanings), None):
        return decisive
    if status:
        return next(meaning for meaning, has_meaning in STATUSES.items() if has_meaning(status))
    return meanings[0] if meanings else "passing"


def _spellings(word: str) -> Iterable[str]:
    """Return the spellings of a word that are looked up: the whole word, its start before a colon, and each side of a dot."""
    if len(word) > MAX_WORD_CHARS:
        return ()
    start = word.partition(":")[0]
    spellings = (word, start, start.rpartition(".")[2], start.partition(".")[0])
    return dict.fromkeys(map(_squeeze, spellings))
