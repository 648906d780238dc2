"""A cluster that loses a node in mid-run: the run ends in one line, what came back is kept, and one process goes on."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import bench_anew, free_port, start_anew, workplace
from equal_runs import assert_equal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves its logs open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

STOPPING = """
import time
from pathlib import Path
from bench.run.architectures.static import static

async def stopping(task, workbench):
    if Path("stop").exists():
        import ray
        Path("stop").unlink()
        Path("node").write_text(ray.get_runtime_context().get_node_id())
        time.sleep(300)
    await static(task, workbench)
"""
"""An architecture whose first trial tells on which node it works, and does not end there."""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
    """A head without processors, and the address at which it is asked."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    port = free_port()
    head = {"num_cpus": 0, "ray_client_server_port": port, "include_dashboard": False}
    made = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    yield made, f"ray://127.0.0.1:{port}"
    made.shutdown()


def test_a_lost_node_loses_no_record_and_the_run_goes_on_in_one_process(tmp_path: Path, cluster: tuple[Any, str]) -> None:
    nodes, address = cluster
    config = workplace(tmp_path, repetitions=3)
    config.write_text(
        config.read_text(encoding="utf-8").replace('"runtime_structured"', '"stopping:stopping"'), encoding="utf-8"
    )
    (tmp_path / "stopping.py").write_text(STOPPING, encoding="utf-8")
    command = ("run", "configs/small.toml", "--name")
    assert bench_anew(tmp_path, *command, "here")[0] == 0
    working = {node.node_id: node for node in (nodes.add_node(num_cpus=1), nodes.add_node(num_cpus=1))}
    (tmp_path / "stop").touch()
    with start_anew(tmp_path, *command, "lost", "--engine", address, PYTHONWARNINGS="default") as running:
        deadline = time.monotonic() + 180
        while not (tmp_path / "node").exists() and time.monotonic() < deadline and running.poll() is None:
            time.sleep(0.1)
        nodes.remove_node(working[(tmp_path / "node").read_text()], allow_graceful=False)
        _, err = running.communicate(timeout=180)
    assert running.returncode == 2 and re.search(r"bench: a worker ended with .*; what came back is kept, and the same", err), (
        err
    )
    assert "Traceback" not in err
    assert bench_anew(tmp_path, *command, "lost")[0] == 0
    assert_equal(tmp_path / "results" / "here", tmp_path / "results" / "lost")
