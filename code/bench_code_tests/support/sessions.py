"""Sessions of `pytest --bench-impact` in a fork of this process, which has pytest loaded, so that they take little."""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import bench_code.pytest_session  # noqa: F401  (so that no fork has to load it)

HERE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Seen:
    """What a session's user sees: the outcome of each test that ran, the kept outcomes, what was printed, and the exit code."""

    ran: dict[str, str]
    kept: dict[str, str]
    printed: str
    code: int

    @property
    def table(self) -> dict[str, str]:
        return self.kept | self.ran


def session(root: Path, *words: str, from_: float = 0.0, variables: dict[str, str] | None = None) -> Seen:
    """Run `pytest --bench-impact`; suites that take less than `from_` seconds run all at once."""
    json_, text = root.parent / f"{root.name}.json", root.parent / f"{root.name}.txt"
    json_.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            with text.open("w") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            sys.stdout, sys.stderr, sys.stdin = (os.fdopen(os.dup(at), mode) for at, mode in ((1, "w"), (2, "w"), (0, "r")))
            code = _run(root, [f"--bench-json={json_}", *words], from_, variables or {})
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    report = json.loads(json_.read_text()) if json_.exists() else {"ran": {}, "kept": {}}
    return Seen(report["ran"], report["kept"], text.read_text(), os.waitstatus_to_exitcode(status))


def _run(root: Path, words: list[str], from_: float, variables: dict[str, str]) -> int:
    os.chdir(root)
    for name in ("PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.environ.update({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | variables)
    warnings.resetwarnings()
    sys.dont_write_bytecode = True
    sys.path[:] = [str(root), *(each for each in sys.path if not each.startswith(str(HERE / "bench_code_tests")))]
    sys.argv = ["pytest"]
    options = ("-p", "bench_code.plugin", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", f"bench_impact_from={from_}")
    asked = () if "--bench-all" in words else ("--bench-impact",)
    return int(pytest.main([*options, *asked, "-v", "--rootdir", str(root), *words]))
