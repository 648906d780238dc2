"""Small git repositories with tests, for what `bench code` is asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sessions import session

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
    seen = session(root, *words, variables=variables)
    return sorted(f"{name} {outcome.upper()}" for name, outcome in seen.ran.items()), len(seen.kept), seen.printed
