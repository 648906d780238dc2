"""The limit on open files: a run needs one open file for each concurrent call."""

from __future__ import annotations

import itertools
import resource

from bench.common.errors import ConfigError
from bench.run.experiment.matrix import Matrix
from bench.run.models.routed import answerers

SPARE_FILES = 256
"""How many open files a run needs besides its calls: for its records, for its graders' child processes and for Python."""


def raise_file_limit(matrix: Matrix) -> None:
    """Raise this process's limit on open files if the concurrent calls need it. Raises ConfigError if the machine does not
    allow the limit."""
    models = itertools.chain.from_iterable(map(answerers, matrix.models.values()))
    calls = sum({model.endpoint: model.concurrency for model in models if model.timing == "live"}.values())
    needed = calls + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        warning = f"{calls} calls in flight need {needed} open files, and this machine allows {hard}"
        advice = "lower concurrency in the config, or "
        if hard <= SPARE_FILES:
            warning, advice = f"a run needs {needed} open files, and this machine allows {hard}", ""
        raise ConfigError(f"{warning}; {advice}raise the limit (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
