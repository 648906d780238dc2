"""How well the intervals and tests hold, into `reports/calibration`: minutes on one core.

PYTHONPATH=tests python -m calibration [FOLDER] [SIMULATIONS]
"""

from __future__ import annotations

import sys
from pathlib import Path

from calibration.exact import exactly
from calibration.experiments import Simulations, everything
from calibration.report import write
from calibration.worlds import RECORDED

FOLDER = Path(__file__).parents[2] / "reports" / "calibration"


def main(folder: Path, simulations: Simulations) -> None:
    results = [*everything(RECORDED, simulations), *exactly()]
    write(folder, results, RECORDED, simulations)
    print(f"{len(results)} results in {folder}")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    asked = Simulations(int(sys.argv[2]), max(1, int(sys.argv[2]) // 5)) if len(sys.argv) > 2 else Simulations()
    main(folder, asked)
