"""pass^k: the chance that k tries all come right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.analysis.statistics.intervals import amount_of
from bench.analysis.statistics.rates import exact_share_by_instance

Of = Literal["tries of one task", "trials"]


@dataclass(frozen=True)
class PassHat:
    """pass^`k` with its 95% interval; all None if there are fewer than k to draw from.

    of   what the k are: tries of one task, as in tau-bench, if each task has several; else any k trials
    n    how many there are to draw from: the fewest of any task, or all trials
    """

    k: int
    value: float | None
    low: float | None
    high: float | None
    of: Of
    n: int


def pass_hat(k: int, tasks: Sequence[tuple[int, int]]) -> PassHat:
    """Return pass^k. `tasks` holds (c, n) of each task: the tries that came right, and all tries.

    For one task C(c, k) / C(n, k) is unbiased. For several tasks it is the mean of these, with the interval of a score's mean.
    If a task has only one try, or the tasks show no spread, the interval is that of the rate of all tries by task (Clopper and
    Pearson's), to the power of k.

    Source: Yao, Shinn, Razavi and Narasimhan, tau-bench, arXiv 2406.12045, after the estimator of pass@k by Chen et al.,
    Evaluating large language models trained on code, arXiv 2107.03374.
    """
    right, tries = sum(c for c, _ in tasks), sum(n for _, n in tasks)
    fewest = min((n for _, n in tasks), default=0)
    of: Of = "tries of one task" if fewest > 1 else "trials"
    drawn_from = tasks if fewest > 1 else [(right, tries)]
    number = fewest if fewest > 1 else tries
    if number < k:
        return PassHat(k, None, None, None, of, number)
    chances = [math.comb(c, k) / math.comb(n, k) for c, n in drawn_from]
    mean = amount_of(chances, "score")
    value = math.fsum(chances) / len(chances)
    if mean.low is not None and mean.high is not None and mean.low < mean.high:
        return PassHat(k, value, mean.low, mean.high, of, number)
    held = [place < c for c, n in tasks for place in range(n)]
    share = exact_share_by_instance([str(task) for task, (_, n) in enumerate(tasks) for _ in range(n)], held)
    assert share.low is not None and share.high is not None
    return PassHat(k, value, min(value, share.low**k), max(value, share.high**k), of, number)
