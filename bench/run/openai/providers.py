"""The providers whose models `--model PROVIDER/NAME` uses without a table in the config."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from bench.common.errors import ConfigError, nearest
from bench.run.openai.settings import OPENAI_URL


class Provider(NamedTuple):
    """An OpenAI-compatible endpoint that many people use.

    base_url      its address, unless the environment variable `PROVIDER_BASE_URL` holds another
    api_key_env   the environment variable that holds the key; an endpoint on loopback needs no key
    omit          request fields that it refuses
    """

    base_url: str
    api_key_env: str
    omit: tuple[str, ...] = ()


PROVIDERS = {
    "openai": Provider(OPENAI_URL, "OPENAI_API_KEY"),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", omit=("seed",)),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "ollama": Provider("http://localhost:11434/v1", "OLLAMA_API_KEY"),
    "vllm": Provider("http://localhost:8000/v1", "VLLM_API_KEY"),
    "llama.cpp": Provider("http://localhost:8080/v1", "LLAMA_CPP_API_KEY"),
}


def provided_entries(word: str) -> dict[str, dict[str, Any]]:
    """Return a config's table for the model `PROVIDER/NAME`, by the model's name in the run. That is NAME, with a hyphen for
    each run of characters that a folder's name cannot have.

    Raises:
        ConfigError: The provider is unknown, or no model is named.
    """
    provider, _, model = word.partition("/")
    if provider not in PROVIDERS:
        table = f'for another endpoint add a table [model.NAME] with model = "{word}" and base_url = "URL" to the config'
        raise ConfigError(f"--model {word}: unknown provider '{provider}'; {nearest(provider, PROVIDERS)}; {table}")
    if not (name := re.sub(r"[^A-Za-z0-9._+-]+", "-", model).strip("-.")):
        raise ConfigError(f"--model {word}: names no model; give {provider}/NAME, as the provider calls it")
    base_url, api_key_env, omit = PROVIDERS[provider]
    variable = f"{provider.upper().replace('.', '_')}_BASE_URL"
    address = os.environ.get(variable, "").strip() or base_url
    entry = {"kind": "openai", "model": model, "base_url": address, "api_key_env": api_key_env}
    return {name: {**entry, "omit": omit} if omit else entry}
