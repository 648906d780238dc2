"""How well the intervals and tests hold, into `reports/calibration`: a quarter of an hour on one core.

PYTHONPATH=tools/reports python -m calibration [FOLDER] [SIMULATIONS]

What tables say of it is written beside the statistics, unless a folder is named.
"""

from __future__ import annotations

import sys
from pathlib import Path

from calibration.clustered import clustered
from calibration.exact import exactly
from calibration.exchange import verdicts_of_runs
from calibration.experiments import Simulations, everything
from calibration.further import effects, further
from calibration.report import comma_separated, read_back, write
from calibration.scorecard import of_scorecards
from calibration.scorecard import write as write_scorecard
from calibration.worlds import RECORDED
from calibration.worst import to_csv, worst

from bench.read.analysis.statistics.limits import CALIBRATION_FILE

ROOT = Path(__file__).parents[3]


def main(folder: Path | None, simulations: Simulations) -> None:
    results = [
        *everything(RECORDED, simulations),
        *exactly(),
        *clustered(simulations),
        *further(simulations),
        *effects(simulations),
    ]
    verdicts = list(verdicts_of_runs(ROOT / "results", simulations))
    into = folder or ROOT / "reports" / "calibration"
    write(into, results, verdicts, RECORDED, simulations)
    write_scorecard(into, list(of_scorecards(simulations)), simulations)
    if folder is None:
        CALIBRATION_FILE.write_text(to_csv(worst(read_back(comma_separated(results)))), encoding="utf-8")
    print(f"{len(results)} results, {len(verdicts)} claims")


if __name__ == "__main__":
    asked = Simulations.of_about(int(sys.argv[2])) if len(sys.argv) > 2 else Simulations()
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, asked)
