"""A command with a module of its own starts without the modules of the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ASKED = """
import sys
from contextlib import suppress
sys.argv = ["bench", "probe", "--dry-run"]
from bench.__main__ import main
with suppress(SystemExit):
    main()
heavy = {"pandas", "matplotlib", "scipy", "numpy", "autogen_core"} & sys.modules.keys()
print(sum(name.partition(".")[0] == "bench" for name in sys.modules), sorted(heavy))
"""


def test_a_probe_starts_with_its_own_modules(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").touch()
    (tmp_path / "probe.toml").write_text('agent = ["cat", "rows.txt"]\n[[store]]\nfile = "rows.txt"\n')
    done = subprocess.run([sys.executable, "-c", ASKED], cwd=tmp_path, capture_output=True, text=True, check=True)
    *shown, last = done.stdout.splitlines()
    count, heavy = last.split(" ", 1)
    assert "nothing was started" in shown
    assert (int(count) <= 180, heavy) == (True, "[]")
