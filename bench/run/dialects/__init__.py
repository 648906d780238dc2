"""The APIs, beside chat completions, that the measuring endpoint serves."""
