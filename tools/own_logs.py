"""Whether the agents of a run noted themselves what was booked of them: `python tools/own_logs.py results/RUN`.

Prints a line for each system and plan, and each difference. Ends with 1 where there is one."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from bench.worlds.analysis.own_logs import LoggedTrial, logs_of


def main(run: Path) -> int:
    kept = logs_of(run)
    arms: defaultdict[tuple[str, str], list[LoggedTrial]] = defaultdict(list)
    for one in kept:
        arms[one.architecture, one.plan].append(one)
    for (architecture, plan), trials in sorted(arms.items()):
        planned, delivered, none = (
            sum(getattr(one, count) for one in trials) for count in ("planned", "delivered", "not_applicable")
        )
        agree = sum(not one.differences for one in trials)
        requests = sum(one.requests for one in trials)
        said = f"{agree} of {len(trials)} trials agree on {requests:,} requests"
        print(f"{architecture}/{plan}: {said}; kills planned {planned}, delivered {delivered}, not applicable {none}")
    differences = [f"{one.architecture}/{one.plan} {one.instance}: {said}" for one in kept for said in one.differences]
    print(*differences, sep="\n", end="\n" if differences else "")
    print(f"{len(kept)} trials with a log of their own, {len(differences)} differences")
    return 1 if differences or not kept else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
