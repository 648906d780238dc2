"""A coding agent of the command line on `repairs:rewrite`: python coding_agent.py COMMAND [ARGUMENT ...]

For each trial that `bench serve` opens, the repository is written into a folder, and the command runs there. `{task}` in an
argument is what is to be done. The files that it changed are handed in; where it changed none, the trial is given up. It finds
the model under the names that clients of OpenAI and of Anthropic look for. The folder is no sandbox: the command runs as you.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2

SERVER = os.environ.get("BENCH_SERVE_URL", "http://127.0.0.1:8090")
TOKEN = os.environ["BENCH_SERVE_TOKEN"]
SECONDS = 600
"""For one trial."""


def environment(base_url: str, home: str) -> dict[str, str]:
    """The model's address and key, as both kinds of clients look for them."""
    openai = {"OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url, "OPENAI_API_KEY": TOKEN}
    anthropic = {"ANTHROPIC_BASE_URL": base_url.removesuffix("/v1"), "ANTHROPIC_API_KEY": TOKEN}
    return {**openai, **anthropic, "HOME": home, "PATH": os.environ["PATH"]}


def changed(trial: dict[str, Any], command: list[str]) -> list[dict[str, str]]:
    """Let the command work on the trial's repository; the files that it changed, whole."""
    documents, [fix] = trial["documents"], trial["subtasks"]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        for name, text in documents.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        words = [word.replace("{task}", fix["instructions"]) for word in command]
        try:
            subprocess.run(words, cwd=folder, env=environment(fix["base_url"], home), check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            print(f"it was ended after {SECONDS} seconds", file=sys.stderr)
        now = {name: Path(folder, name).read_text(encoding="utf-8") for name in documents if Path(folder, name).is_file()}
        return [{"file": name, "text": text} for name, text in now.items() if text != documents[name]]


def main(command: list[str]) -> None:
    with httpx2.Client(base_url=SERVER, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=None) as server:
        while (shown := server.get("/trial")).status_code != 410:
            files = changed(shown.json(), command)
            if files:
                account = server.post("/trial/answer", json={"fix": {"files": files}})
            else:
                account = server.post("/trial/give-up", json={"reason": "the agent changed no file"})
            print(account.json().get("outcome") or account.text, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
