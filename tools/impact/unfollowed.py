"""Generated tests of what a selector by code coverage does not follow: two hundred of them, of which all must run again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from impact.packages import Package, git
from impact.trial import FULL, PLAIN, RECORDINGS, SELECTORS, Suite

EACH = 40
"""Tests of a kind that depend on what is changed; as many again depend on what stays."""
WAYS = {
    "data file": (
        "assert open(HERE + '/data/{name}.txt').read() == 'before'",
        "import pathlib; assert pathlib.Path(HERE, 'data', '{name}.txt').read_bytes() == b'before'",
        "import json; assert json.load(open(HERE + '/data/{name}.json')) == ['before']",
        "assert os.stat(HERE + '/data/{name}.txt').st_size == 6",
    ),
    "absent file": (
        "assert not os.path.exists(HERE + '/absent/{name}.txt')",
        "import pathlib; assert not pathlib.Path(HERE, 'absent', '{name}.txt').is_file()",
        "import glob; assert not glob.glob(HERE + '/absent/{name}/*.txt')",
        "assert not os.access(HERE + '/absent/{name}.txt', os.R_OK)",
    ),
    "environment": (
        "assert os.environ.get('IMPACT_{name}') is None",
        "assert 'IMPACT_{name}' not in os.environ",
        "assert os.getenv('IMPACT_{name}', 'none') == 'none'",
        "assert os.environb.get(b'IMPACT_{name}') is None",
    ),
    "order": ("import memo; assert memo.value('{name}') == 'before'",),
    "dynamic import": (
        "import importlib; assert importlib.import_module('plug_{name}').VALUE == 'before'",
        "assert __import__('plug_{name}').VALUE == 'before'",
        "import runpy; assert runpy.run_path(HERE + '/plug_{name}.py')['VALUE'] == 'before'",
        "import importlib.util as u; s = u.spec_from_file_location('x', HERE + '/plug_{name}.py')\n"
        "    m = u.module_from_spec(s); s.loader.exec_module(m); assert m.VALUE == 'before'",
    ),
}
MEMO = """import importlib
KEPT = {}
def value(name):
    group = name[:-1]
    if group not in KEPT:
        KEPT[group] = importlib.import_module("slow_" + group).computed()
    return KEPT[group]
"""


def unfollowed(work: Path) -> list[dict[str, str]]:
    """For each kind of dependence and each selector, the results that a change turned, and those of them that it missed."""
    root = work / "unfollowed-1"
    shutil.rmtree(root, ignore_errors=True)
    names = {kind: [f"{kind[0]}{number:02}" for number in range(2 * EACH)] for kind in WAYS}
    # Two tests each share a value that the first of them computes.
    names["order"] = [f"o{number // 2:02}{'ab'[number % 2]}" for number in range(2 * EACH)]
    for kind, of_kind in names.items():
        ways = WAYS[kind]
        tests = "".join(
            f"def test_{name}():\n    {ways[number % len(ways)].format(name=name)}\n" for number, name in enumerate(of_kind)
        )
        put(
            root / f"test_{kind.replace(' ', '_')}.py", f"import os\nHERE = os.path.dirname(os.path.abspath(__file__))\n{tests}"
        )
    put(root / "memo.py", MEMO)
    put(root / "absent/any.md", "")
    for kind, of_kind in names.items():
        for name in of_kind:
            _state(root, kind, name, "before")
    git(root, "init", "-q")
    suite = Suite(Package("unfollowed", "1", ".", ".", "."), root)
    for state in (work / "states").glob("unfollowed-1-*"):  # of an earlier call
        shutil.rmtree(state)
    for selector in RECORDINGS:
        before = suite.recorded(selector)[0]
    changed = {(kind, name) for kind, of_kind in names.items() for name in of_kind[:EACH]}
    for kind, name in sorted(changed):
        _state(root, kind, name, "after")
    os.environ |= {f"IMPACT_{name}": "after" for kind, name in changed if kind == "environment"}
    full = suite.run(FULL, *PLAIN)
    rows = []
    for selector, chosen in SELECTORS.items():
        suite.restore(selector)
        selected = suite.run(selector, *chosen)
        if full is None or selected is None:
            raise SystemExit("impact: the generated tests do not end")
        for kind in WAYS:
            turned = {test for test in full.outcomes if _is_of(test, kind) and full.outcomes[test] != before.outcomes[test]}
            ran = {test for test in selected.outcomes if _is_of(test, kind)}
            counts = {"changed": len(turned), "missed": len(turned - ran), "over_run": len(ran - turned)}
            rows.append({"kind": kind, "selector": selector} | {key: str(count) for key, count in counts.items()})
    return rows


def _is_of(test: str, kind: str) -> bool:
    return test.startswith(f"test_{kind.replace(' ', '_')}.py::")


def _state(root: Path, kind: str, name: str, state: str) -> None:
    """Bring what one test depends on into a state."""
    if kind == "data file":
        put(root / f"data/{name}.txt", state if state == "before" else "afterwards")
        put(root / f"data/{name}.json", f'["{state}"]')
    elif kind == "absent file" and state == "after":
        put(root / f"absent/{name}.txt", "")
        put(root / f"absent/{name}/one.txt", "")
    elif kind == "order":
        put(root / f"slow_{name[:-1]}.py", f"def computed():\n    return '{state}'\n")
    elif kind == "dynamic import":
        put(root / f"plug_{name}.py", f"VALUE = '{state}'\n")


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
