"""The wing of live models: models behind an endpoint for OpenAI's chat completions, and what can go wrong there."""

ENTRIES = {"models": ("bench.openai.entries:MODELS",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
