"""An agent of two processes: a foreman starts a clerk, and another one whenever a clerk has died, and prints how each ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CLERK = [sys.executable, str(Path(__file__).with_name("clerk.py")), *sys.argv[1:]]

while ended := subprocess.run(CLERK, check=False).returncode:
    print(f"a clerk ended with {ended}", flush=True)
print("the foreman ends")
