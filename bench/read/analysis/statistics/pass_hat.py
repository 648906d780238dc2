"""pass^k: the chance that all of k tries solve the task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.read.analysis.statistics.intervals import amount_of
from bench.read.analysis.statistics.rates import exact_share_by_instance


@dataclass(frozen=True)
class PassHat:
    """pass^`k` with its 95% interval. All values are None if no task was tried k times.

    of         what the mean is taken over: tasks, as in tau-bench
    n          the number of tasks with at least k tries
    left_out   the number of tasks with fewer tries, which have no pass^k
    """

    k: int
    value: float | None
    low: float | None
    high: float | None
    of: Literal["tasks"]
    n: int
    left_out: int


def pass_hat(k: int, tasks: Sequence[tuple[int, int]]) -> PassHat:
    """Return pass^k. `tasks` holds (c, n) for each task: the number of successful tries, and the number of all tries.

    For one task with n >= k tries, C(c, k) / C(n, k) is unbiased. For several tasks it is the mean of these, with the interval
    of a score's mean. Tries of different tasks are never pooled for it. If each task has one try, or the tasks show no spread,
    the interval is that of the rate of all tries by task (Clopper and Pearson's), to the power of k.

    Source: Yao, Shinn, Razavi and Narasimhan, tau-bench, arXiv 2406.12045, after the estimator of pass@k by Chen et al.,
    Evaluating large language models trained on code, arXiv 2107.03374.
    """
    tried = [(c, n) for c, n in tasks if n >= k]
    left_out = len(tasks) - len(tried)
    if not tried:
        return PassHat(k, None, None, None, "tasks", 0, left_out)
    chances = [math.comb(c, k) / math.comb(n, k) for c, n in tried]
    mean = amount_of(chances, "score")
    value = math.fsum(chances) / len(chances)
    low, high = mean.low, mean.high
    if low is None or high is None or low == high or max(n for _, n in tried) == 1:
        successes = [number < c for c, n in tried for number in range(n)]
        share = exact_share_by_instance([str(task) for task, (_, n) in enumerate(tried) for _ in range(n)], successes)
        assert share.low is not None and share.high is not None
        low, high = min(value, share.low**k), max(value, share.high**k)
    return PassHat(k, value, low, high, "tasks", len(tried), left_out)
