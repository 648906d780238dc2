"""A coding agent of the command line repairs a repository in a folder, and what it changed is handed in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import free_port, start

ROOT = Path(__file__).parents[3]
ADAPTER = ROOT / "configs" / "systems" / "coding_agent.py"
TOKEN = "the-token-of-these-tests"
CONFIG = """
name = "coding"
scenarios = ["repairs:rewrite/case_01"]
architectures = ["runtime_structured"]
models = ["simulated"]
plans = ["none"]
repetitions = 1
seed = 1
model.simulated.kind = "simulated"
"""
AGENT = """
import json, os, sys
import httpx2
asked = {"messages": [{"role": "user", "content": sys.argv[1]}], "max_tokens": 4000}
if sys.argv[2] == "anthropic":
    address, headers = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", {"x-api-key": os.environ["ANTHROPIC_API_KEY"]}
    reply = httpx2.post(address, json={**asked, "model": "any"}, headers=headers).json()["content"][0]["text"]
else:
    address, key = os.environ["OPENAI_BASE_URL"] + "/chat/completions", os.environ["OPENAI_API_KEY"]
    headers = {"Authorization": f"Bearer {key}"}
    reply = httpx2.post(address, json=asked, headers=headers).json()["choices"][0]["message"]["content"]
for each in json.loads(reply[reply.index("{"):])["files"]:
    open(each["file"], "w").write(each["text"])
"""
"""It writes the files that the model names, and nothing else."""


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (("-c", AGENT, "{task}", "openai"), "solved"),
        (("-c", AGENT, "{task}", "anthropic"), "solved"),
        (("-c", "print('I looked at it')"), "gave_up"),
    ],
)
def test_what_a_command_changes_is_handed_in_and_a_trial_in_which_it_changes_nothing_is_given_up(
    tmp_path: Path, words: tuple[str, ...], outcome: str
) -> None:
    (tmp_path / "coding.toml").write_text(CONFIG)
    port = free_port()
    named = ["--scenario", "repairs:rewrite/case_01", "--name", "coding", "--scenarios", str(ROOT / "scenarios")]
    environment = {**os.environ, "BENCH_SERVE_TOKEN": TOKEN, "BENCH_SERVE_URL": f"http://127.0.0.1:{port}"}
    command = [sys.executable, str(ADAPTER), sys.executable, *words]
    with start(tmp_path, "serve", "coding.toml", "--port", str(port), *named, BENCH_SERVE_TOKEN=TOKEN) as served:
        served.wait_until_said("Ctrl-C stops")
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        code, _, problems = served.ended()
    assert told.stdout.splitlines()[-1] == outcome, told.stderr
    assert code == 0, problems
