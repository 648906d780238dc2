"""A run's open files: raised where they can be, refused in one line where not."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from commands import bench, environment, workplace
from scripted_server import ScriptedServer

LIVE = '[model.local]\nkind = "openai"\nbase_url = "{url}"\nconcurrency = {calls}\n'


def test_more_calls_than_the_machine_allows_open_files_are_refused_in_one_line(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ScriptedServer() as server:
        config = workplace(tmp_path, model="local")
        config.write_text(config.read_text() + LIVE.format(url=server.base_url, calls=hard))
        code, _, err = bench(tmp_path, "run", "configs/small.toml")
    assert code == 2 and not server.requests
    assert f"{hard} calls in flight need {hard + 256} open files" in " ".join(err.split())


def test_a_run_without_calls_is_told_to_raise_the_limit_alone(tmp_path: Path) -> None:
    config = workplace(tmp_path)
    words = [sys.executable, "-m", "bench", "run", str(config)]
    limited = "from resource import *; setrlimit(RLIMIT_NOFILE, (40, 40)); import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", limited, *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    message = "bench: a run needs 256 open files, and this machine allows 40; raise the limit (ulimit -Hn)\n"
    assert (done.returncode, done.stderr) == (2, message)
