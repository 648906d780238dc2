"""The workers of a run of all tests fork by one server."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import fork_server
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process's parent is read from /proc")
PARENT_OF_A_FORK = """
import ast, sys
sys.path.insert(0, "tests/support")
import fork_server, tests.test_fork_server
fork_server.join(ast.literal_eval(sys.argv[1]))
print(tests.test_fork_server.parent_of_a_fork())
"""


def parent_of_a_fork() -> int:
    """Return the id of the process that forks for this process."""
    process = multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(60,), daemon=True)
    process.start()
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    process.kill()
    process.join()
    return int(stat.rpartition(")")[2].split()[1])


def test_a_process_that_joined_forks_by_the_server_of_the_process_that_started_it() -> None:
    words = (sys.executable, "-c", PARENT_OF_A_FORK, repr(fork_server.started()))
    root = Path(__file__).parents[1]
    joined = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True, timeout=60)
    assert (int(joined.stdout), joined.stderr) == (parent_of_a_fork(), "")
