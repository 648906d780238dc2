"""A run's open files: raised where they can be, refused in one line where not."""

from __future__ import annotations

import resource
from pathlib import Path

from commands import bench, workplace
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
