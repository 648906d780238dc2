"""The command starts at once: what only a report needs is imported by the commands that write one."""

from __future__ import annotations

import signal
import subprocess
import sys

REPORT = "import sys, bench.read.report.report; print(sorted({'scipy.stats', 'scipy.optimize'} & sys.modules.keys()))"
STOPPED = """
import os, signal, sys

class Stop:
    def find_spec(self, name, *_):
        if name == "bench.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Stop())
from bench.__main__ import main
main()
"""
ASKED = "import sys, bench.cli.main; print(sorted({'pandas', 'matplotlib', 'scipy', 'numpy', 'openai'} & sys.modules.keys()))"


def test_no_command_waits_at_its_start_for_what_only_a_report_or_a_live_model_needs() -> None:
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_no_report_waits_at_its_start_for_tests_that_few_reports_make() -> None:
    done = subprocess.run([sys.executable, "-c", REPORT], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_ctrl_c_while_the_command_loads_ends_it_without_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # no thread runs here
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
