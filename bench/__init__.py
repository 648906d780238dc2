"""Measures what a failure costs an LLM-agent architecture: tokens, seconds, correctness.

    run = bench.load_run("results/NAME")
    run.trials, run.calls     # pandas frames

Its names are imported on first use, so that `import bench` takes no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.common.former_paths import install

if TYPE_CHECKING:
    from bench.read.analysis.frames import Run, load_run

__all__ = ["Run", "load_run"]

install()


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'bench' has no attribute '{name}'")
    from bench.read.analysis import frames  # noqa: PLC0415

    return getattr(frames, name)
