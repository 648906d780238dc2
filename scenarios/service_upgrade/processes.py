"""Run commands on a tree: its tests (pytest), its lint (ruff), an instance of the service, and a canary (both over HTTP on
loopback, with a SQLite database). Results are stored by the tree's digest, the command and the seed, so that a trial can be
reproduced. A process runs only if there is no stored result. All code that runs here is the pack's own. If a model writes code
in a case, the trees run in the sandbox, and only the lint, which executes nothing, reads them here."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from xml.etree import ElementTree

from bench.common.seeding import seed_of

from .database import holding, migrated
from .in_sandbox import failing_requests, failing_tests
from .repository import CONTRACT, FilesOf, library, pinned, tree_of
from .story import Case, Row

Command = Literal["tests", "lint", "instance", "canary"]
KEPT = Path(__file__).with_name("kept.json")
REQUESTS = 40
"""Of a canary."""
SECONDS = 60


def failures(case: Case, files: FilesOf, command: Command, seed: int = 1) -> tuple[str, ...]:
    """Return what fails, by name: a test, a lint rule, a request. Empty if nothing fails."""
    results, key = kept().setdefault(tree_of(files), {}), f"{command} {seed}"
    if key not in results:
        results[key] = sorted((IN_SANDBOX if case.is_written else RUN).get(command, RUN[command])(case, files, seed))
    return tuple(results[key])


@cache
def kept() -> dict[str, dict[str, list[str]]]:
    """Return the stored results of the pack: tree -> command and seed -> failures. This process adds its own results."""
    return dict(json.loads(KEPT.read_text(encoding="utf-8"))) if KEPT.exists() else {}


@contextmanager
def _laid_out(case: Case, files: FilesOf) -> Iterator[tuple[Path, dict[str, str]]]:
    """Write a tree into a folder; yield the folder, and the environment in which the pinned library can be imported."""
    with TemporaryDirectory() as folder:
        tree, site = Path(folder, "tree"), Path(folder, "site")
        version = next(number for number in (0, 1) if pinned(case, number) == files["requirements.txt"])
        texts = {tree / name: text for name, text in files.items()}
        for path, text in {**texts, site / f"{case.library}.py": library(case, version)}.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        plain = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": os.environ["PATH"]}
        yield tree, {"PYTHONPATH": f"{site}:{tree}", **plain}


def _tests(case: Case, files: FilesOf, seed: int) -> Iterator[str]:
    with _laid_out(case, files) as (tree, environment):
        report, plain = tree.with_name("report.xml"), ["-q", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider"]
        command = ["pytest", *plain, f"--junitxml={report}", "tests"]
        _python(command, tree, {**environment, "RUN": str(seed)})
        for test in ElementTree.parse(report).iter("testcase"):
            if test.find("failure") is not None or test.find("error") is not None:
                yield f"{test.get('classname')}.{test.get('name')}".removeprefix("tests.")


def _lint(case: Case, files: FilesOf, _: int) -> Iterator[str]:
    with _laid_out(case, files) as (tree, environment):
        command = ["ruff", "check", "--isolated", "--no-cache", "--select", "E9,F", "--output-format", "json", "."]
        for finding in json.loads(_python(command, tree, environment)):
            yield f"{Path(finding['filename']).name}: {finding['code']}"


def _python(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    if find_spec(command[0]) is None:
        raise RuntimeError(f"{command[0]} is not installed, and this tree has no kept result of it; pip install {command[0]}")
    command = [sys.executable, "-m", *command]
    run = subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{command[2]} did not run: {(run.stderr or run.stdout).strip()[-200:]}")
    return run.stdout


def _instance(case: Case, files: FilesOf, _: int) -> Iterator[str]:
    """Yield the requests whose answers have changed."""
    with _serving(case, files, case.orders) as port:
        for path, value in json.loads(files[CONTRACT]):
            if _answer(port, path) != ((404, None) if value is None else (200, value)):
                yield path


def _canary(case: Case, files: FilesOf, seed: int) -> Iterator[str]:
    """Yield the requests, of a share of the traffic, that the service failed to answer."""
    with _serving(case, files, case.production) as port:
        for number in range(REQUESTS):
            draw = seed_of("service_upgrade", case.name, "canary", seed, number)
            module, order = case.modules[draw % len(case.modules)], case.production[draw // 8 % len(case.production)]
            if _answer(port, f"/{module.name}/{order['id']}")[0] >= 500:
                yield f"request {number + 1:02}"


@contextmanager
def _serving(case: Case, files: FilesOf, orders: Sequence[Row]) -> Iterator[int]:
    """Run the service with these orders, and yield the port on which it listens."""
    with _laid_out(case, files) as (tree, environment):
        path = tree.with_name("orders.sqlite")
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(migrated(holding(orders)))
        command = [sys.executable, "app.py", str(path)]
        with subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True) as service:
            try:
                assert service.stdout is not None, "it is a pipe"
                yield int(service.stdout.readline())
            finally:
                service.terminate()


def _answer(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


IN_SANDBOX: Mapping[str, Any] = {"tests": failing_tests, "instance": failing_requests}
RUN: Mapping[str, Any] = {"tests": _tests, "lint": _lint, "instance": _instance, "canary": _canary}
