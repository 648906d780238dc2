"""Live models: models behind an OpenAI-compatible chat completions endpoint, and what can go wrong there."""
