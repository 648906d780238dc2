"""Small git repositories with tests, for what `bench code` is asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

MONEY = {
    "money.py": "RATE = 2\n\n\ndef total(amounts):\n    return sum(amounts) * RATE\n\n\ndef spare(x):\n    return total([x])\n",
    "names.py": 'def greet(name):\n    """Say hello."""\n    return f"hello {name}"\n',
    "test_money.py": "import money\n\n\ndef test_total():\n    assert money.total([1, 2]) == 6\n",
    "test_names.py": 'import names\n\n\ndef test_greet():\n    assert names.greet("a") == "hello a"\n',
}


def git(root: Path, *words: str) -> str:
    identity = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ("git", "-C", str(root), *words), capture_output=True, text=True, check=True, env=os.environ | identity
    )
    return done.stdout


def repository(root: Path, files: dict[str, str] = MONEY) -> Path:
    """A repository with these files committed."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "begin")
    return root


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def impact(root: Path, *words: str, variables: dict[str, str] | None = None) -> tuple[list[str], int, str]:
    """Run `pytest --bench-impact`: the tests that ran with their outcomes, how many results were kept, and what was said."""
    here = str(Path(__file__).parents[3])
    environment = os.environ | {"PYTHONPATH": here, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"} | (variables or {})
    environment.pop("PYTEST_ADDOPTS", None)
    asked = words if any(word.startswith("--bench-record") for word in words) else ("--bench-impact", *words)
    command = (sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider")
    done = subprocess.run(
        (*command, "-p", "bench_code.plugin", *asked),
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    ran = re.findall(r"^(\S+::\S+) (PASSED|FAILED|ERROR|SKIPPED|XFAIL)", done.stdout, re.M)
    kept = re.search(r"(\d+) results kept", done.stdout)
    return sorted(f"{name} {outcome}" for name, outcome in ran), int(kept[1]) if kept else -1, done.stdout + done.stderr
