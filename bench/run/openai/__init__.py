"""The wing of live models: models behind an OpenAI-compatible chat completions endpoint, and what can go wrong there."""

ENTRIES = {"models": ("bench.run.openai.entries:MODELS",)}
"""The entries that the wing adds, by kind (`bench.common.registry.WINGS`)."""
