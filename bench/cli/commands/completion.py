"""Shell completion: the names of runs, of packs, and of the entries of a config. A file that cannot be read gives no name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer

from bench.common.errors import BenchError
from bench.common.paths import PACKS, runs_known


def run_names(incomplete: str) -> list[str]:
    """Return the names of the runs under results/ that begin with `incomplete`."""
    return _filter_by_prefix(incomplete, runs_known())


def pack_names(incomplete: str) -> list[str]:
    """Return the names of the packs under scenarios/ that begin with `incomplete`."""
    from bench.run.packs import find_packs  # noqa: PLC0415  a completion of another value should not wait for it

    return _filter_by_prefix(incomplete, find_packs(PACKS))


def model_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the config's models, the providers and the recordings that begin with `incomplete`."""
    from bench.run.openai.providers import PROVIDERS  # noqa: PLC0415  a completion of another value should not wait for it

    recorded, provided = (f"recorded:{name}" for name in runs_known()), (f"{name}/" for name in PROVIDERS)
    return _filter_by_prefix(incomplete, (*_names_in_config(ctx, "model"), *provided, *recorded))


def plan_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the config's fault plans, and `none`, that begin with `incomplete`."""
    return _filter_by_prefix(incomplete, ("none", *_names_in_config(ctx, "plan")))


def _names_in_config(ctx: typer.Context, table: str) -> Iterable[str]:
    """Return the names in a table of the config that is being completed."""
    from bench.run.experiment.config import load_config  # noqa: PLC0415  a completion of another value should not wait for it

    # click leaves an argument unparsed where the option that is completed has no value yet
    config = ctx.params.get("config") or next((word for word in ctx.args if not word.startswith("-")), "")
    try:
        names: Iterable[str] = getattr(load_config(Path(config), {}), table)
    except (BenchError, OSError):
        return ()
    return names


def _filter_by_prefix(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with `incomplete`, sorted."""
    return sorted(name for name in names if name.startswith(incomplete))
