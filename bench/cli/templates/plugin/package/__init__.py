"""Parts of recovery-bench; `pyproject.toml` declares them as entry points."""
