"""The command starts at once: what only a report needs is imported by the commands that write one."""

from __future__ import annotations

import subprocess
import sys

REPORT = "import sys, bench.report.report; print(sorted({'scipy.stats', 'scipy.optimize'} & sys.modules.keys()))"
ASKED = "import sys, bench.cli.main; print(sorted({'pandas', 'matplotlib', 'scipy', 'numpy', 'openai'} & sys.modules.keys()))"


def test_no_command_waits_at_its_start_for_what_only_a_report_or_a_live_model_needs() -> None:
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_no_report_waits_at_its_start_for_tests_that_few_reports_make() -> None:
    done = subprocess.run([sys.executable, "-c", REPORT], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
