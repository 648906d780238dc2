"""Whether the agents of a run noted themselves what was booked of them: `python tools/own_logs.py results/RUN`.

Prints a line for each system and plan, and each difference. Ends with 1 where there is one."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from bench.worlds.read.analysis.own_logs import LoggedTrial, logs_of


def main(run: Path) -> int:
    kept = logs_of(run)
    arms: defaultdict[tuple[str, str], list[LoggedTrial]] = defaultdict(list)
    for trial in kept:
        arms[trial.architecture, trial.plan].append(trial)
    for (architecture, plan), trials in sorted(arms.items()):
        planned, delivered, none = (
            sum(getattr(trial, count) for trial in trials) for count in ("planned", "delivered", "not_applicable")
        )
        agree = sum(not trial.differences for trial in trials)
        requests = sum(trial.requests for trial in trials)
        line = f"{agree} of {len(trials)} trials agree on {requests:,} requests"
        print(f"{architecture}/{plan}: {line}; kills planned {planned}, delivered {delivered}, not applicable {none}")
    differences = [
        f"{trial.architecture}/{trial.plan} {trial.instance}: {difference}"
        for trial in kept
        for difference in trial.differences
    ]
    print(*differences, sep="\n", end="\n" if differences else "")
    print(f"{len(kept)} trials with a log of their own, {len(differences)} differences")
    return 1 if differences or not kept else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
