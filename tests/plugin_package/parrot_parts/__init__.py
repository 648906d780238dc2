"""One part of each kind, as a package of somebody's own has them; `pyproject.toml` beside it declares them as entry points."""
