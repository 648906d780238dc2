"""Variants of architectures in one run, each with the variant that it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.read.analysis.frames import Run


def differing_in(run: Run, setting: str, counts: Callable[[Any], bool], other: object) -> dict[str, str]:
    """Return variant -> the variant that differs from it in this setting alone.

    Args:
        run: The run with both.
        setting: The name of the setting in the config.
        counts: (value) -> whether a variant with this value is compared.
        other: The value of the variant that it is compared with.
    """
    entries = {name: entry for name, entry in run.config.architecture.items() if name in run.names("architecture")}
    return {
        name: twin
        for name, entry in entries.items()
        for twin, of_twin in entries.items()
        if counts(getattr(entry, setting)) and of_twin == entry.model_copy(update={setting: other})
    }


def with_remedies(run: Run) -> dict[str, str]:
    """Return pattern -> its variant with remedies and the same number of children, if the run has both variants."""
    entries, names = run.config.architecture, run.names("architecture")

    def kind(name: str) -> tuple[str, int | None]:
        return run.config.base(name), entries[name].children if name in entries else None

    remedied = {kind(name): name for name in names if name in entries and entries[name].remedies}
    return {name: remedied[kind(name)] for name in names if kind(name) in remedied and name not in remedied.values()}
