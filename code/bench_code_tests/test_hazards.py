"""What a test depends on in ways that are easily overlooked: each change here must make it run again."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import impact, repository, write

from bench_code import ExecutionState
from bench_code.units import parse

LIB = "def made():\n    return 1\n"
CHANGED = LIB.replace("1", "2")
Change = Callable[[Path], object]
Case = tuple[str, Change]


def _lib(folder: Path) -> None:
    write(folder, {f"{folder.name}_lib.py": CHANGED})


def _data(folder: Path) -> None:
    write(folder, {"data/one.txt": "longer"})


def _link(folder: Path) -> None:
    (folder / "data").rename(folder / "old")
    (folder / "data").symlink_to("new")
    write(folder, {"new/one.txt": "changed"})


def _nothing(_folder: Path) -> None:
    pass


CASES: dict[str, Case] = {
    "setup_module": ("def setup_module(): lib.value = lib.made()\ndef test_it(): assert lib.value\n", _lib),
    "setup_class": (
        "class TestIt:\n    @classmethod\n    def setup_class(cls): cls.value = lib.made()\n"
        "    def test_it(self): assert self.value\n    def test_next(self): assert self.value\n",
        _lib,
    ),
    "setup_method": (
        "class TestIt:\n    def setup_method(self): self.value = lib.made()\n    def test_it(self): assert self.value\n",
        _lib,
    ),
    "set_up_class": (
        "import unittest\nclass It(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls): cls.value = lib.made()\n"
        "    def test_it(self): assert self.value\n    def test_next(self): assert self.value\n",
        _lib,
    ),
    "thread_that_never_ends": (
        "import threading\ndef test_it():\n    begun = threading.Event()\n"
        "    threading.Thread(target=lib.loop, args=(begun, threading.Event()), daemon=True).start()\n    begun.wait()\n",
        lambda folder: write(folder, {"thread_that_never_ends_lib.py": LOOP.replace("9", "8")}),
    ),
    "sizes_by_scandir": ("def test_it(): assert [one.stat().st_size for one in os.scandir(HERE + '/data')]\n", _data),
    "beside_a_descriptor": (
        "def test_it():\n    folder = os.open(HERE + '/data', os.O_RDONLY)\n"
        "    assert os.read(os.open('one.txt', os.O_RDONLY, dir_fd=folder), 9)\n",
        _data,
    ),
    "executable_bit": (
        "def test_it(): os.access(HERE + '/data/one.txt', os.X_OK)\n",
        lambda folder: (folder / "data/one.txt").chmod(0o755),
    ),
    "link_that_leads_elsewhere": ("def test_it(): open(HERE + '/data/one.txt').read()\n", _link),
    "link_to_nowhere": (
        "def test_it(): os.path.islink(HERE + '/none')\n",
        lambda folder: (folder / "none").symlink_to("nowhere"),
    ),
    "module_in_a_later_folder": (
        "import sys\nsys.path[:0] = [HERE + '/first', HERE + '/more']\nimport space\ndef test_it(): assert space.__path__\n",
        lambda folder: write(folder, {"more/space.py": ""}),
    ),
    "submodule_where_its_package_lies": (
        "import sys, types\nsys.modules['odd'] = odd = types.ModuleType('odd')\nodd.__path__ = [HERE + '/data']\n"
        "def test_it():\n    try:\n        import odd.fast\n    except ImportError:\n        pass\n",
        lambda folder: write(folder, {"data/fast.py": ""}),
    ),
    "new_conftest": ("def test_it(): pass\n", lambda folder: write(folder, {"conftest.py": ""})),
    "environment_in_bytes": ("def test_it(): os.environb.get(b'SOME')\n", _nothing),
}
"""A test, and a change of what it depends on. Each stands in a folder of its own, and all changes are made at once."""
LOOP = "def loop(begun, end):\n    begun.set()\n    end.wait(9)\n"


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], set[str]]:
    """The tests that ran again without a change, and the folders whose tests ran again with all changes."""
    files: dict[str, str] = {}
    for name, (test, _) in CASES.items():
        head = f"import os\nimport {name}_lib as lib\nHERE = os.path.dirname(__file__)\n"
        files |= {
            f"{name}/test_{name}.py": head + test,
            f"{name}/{name}_lib.py": LOOP if name == "thread_that_never_ends" else LIB,
        }
        files |= {f"{name}/data/one.txt": "1", f"{name}/first/space/some.txt": ""}
    root = repository(tmp_path_factory.mktemp("cases"), files)
    impact(root)
    unasked = impact(root)[0]
    for name, (_, change) in CASES.items():
        change(root / name)
    ran = impact(root, variables={"SOME": "1"})[0]
    return unasked, {name.partition("/")[0] for name in ran}


def test_nothing_runs_again_without_a_change(again: tuple[list[str], set[str]]) -> None:
    assert again[0] == []


@pytest.mark.parametrize("name", CASES)
def test_a_test_runs_again_after_a_change_of(name: str, again: tuple[list[str], set[str]]) -> None:
    assert name in again[1]


@pytest.mark.parametrize(
    ("files", "variables"),
    [
        ({"pytest.ini": "[pytest]\nfilterwarnings = error\n"}, {}),
        ({f"lib{sysconfig.get_config_var('EXT_SUFFIX')}": "no library"}, {}),
        ({}, {"TZ": "Asia/Tokyo"}),
    ],
)
def test_what_all_tests_depend_on_runs_all_again(files: dict[str, str], variables: dict[str, str], tmp_path: Path) -> None:
    root = repository(tmp_path, {"test_it.py": "import lib\ndef test_it(): lib.made()\n", "lib.py": LIB, "setup.cfg": ""})
    impact(root)
    write(root, files)
    assert impact(root, variables=variables)[1] == 0


def test_a_test_that_asks_whether_a_file_is_there_is_kept_until_the_file_goes(tmp_path: Path) -> None:
    asks = (
        "import os.path, pathlib\ndef test_exists(): os.path.exists('one.txt')\n"
        "def test_is_file(): pathlib.Path('one.txt').is_file()\n"
        "def test_inspect():\n    import inspect; inspect.getmodule(test_size.__code__)\n"
        "def test_size(): assert not os.path.exists('one.txt') or os.path.getsize('one.txt')\n"
    )
    root = repository(tmp_path, {"test_it.py": asks, "one.txt": "1"})
    impact(root)
    write(root, {"one.txt": "2"})
    assert impact(root)[:2] == (["test_it.py::test_size PASSED"], 3)
    (root / "one.txt").unlink()
    assert len(impact(root)[0]) == 3


def test_code_beside_the_tree_that_is_not_installed_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "sibling", {"beside.py": LIB})
    root = repository(tmp_path / "tree", {"test_it.py": "import beside\ndef test_it(): assert beside.made()\n"})
    beside = {"PYTHONPATH": f"{Path(__file__).parents[2]}:{tmp_path / 'sibling'}"}
    variables = beside | {"TMPDIR": str(tmp_path / "tree")}  # what lies in the folder for temporary files is not followed
    impact(root, variables=variables)
    assert impact(root, variables=variables)[0] == []
    write(tmp_path / "sibling", {"beside.py": CHANGED.replace("2", "0")})
    assert impact(root, variables=variables)[0] == ["test_it.py::test_it FAILED"]


def test_a_result_holds_for_its_configuration_and_its_folder_alone(tmp_path: Path) -> None:
    root = repository(
        tmp_path, {"test_it.py": "def test_it(): pass\n", "a.ini": "[pytest]\n", "b.ini": "[pytest]\n", "sub/x": ""}
    )
    impact(root, "-c", "a.ini")
    assert impact(root, "-c", "a.ini")[0] == []
    assert impact(root, "-c", "b.ini")[0] == ["test_it.py::test_it PASSED"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import secrets; assert secrets.token_hex()", "draws unseeded chance"),
        (
            "import multiprocessing as m; m.get_context('spawn').Process(target=print).start()",
            "starts a process",
        ),
        ("import datetime, threading as t; x = t.Thread(target=datetime.datetime.now); x.start(); x.join()", "reads the clock"),
        (
            "import dataclasses as d, datetime as t; at = d.field(default_factory=t.datetime.now)\n"
            "    d.make_dataclass('A', [('at', object, at)])()",
            "reads the clock",
        ),
    ],
)
def test_what_is_different_each_time_is_never_kept(tmp_path: Path, body: str, why: str) -> None:
    root = repository(tmp_path, {"test_v.py": f"def test_v():\n    {body}\n"})
    impact(root)
    assert why in ExecutionState.open(root).executions("test_v.py::test_v")[-1].volatile


def test_what_two_orders_showed_is_known_after_a_further_edit(tmp_path: Path) -> None:
    memo = "import slow\nmemo = []\ndef value():\n    if not memo:\n        memo.append(slow.computed())\n    return memo[0]\n"
    tests = "import memo\n" + "".join(f"def test_{each}():\n    assert memo.value() == 1\n" for each in "abc")
    root = repository(tmp_path, {"memo.py": memo, "slow.py": "def computed():\n    return 1\n", "test_memo.py": tests})
    impact(root)
    impact(root, "--bench-record=reversed")
    for value in (2, 3):
        write(root, {"slow.py": f"def computed():\n    return {value}\n"})
        assert impact(root)[0] == [f"test_memo.py::test_{each} FAILED" for each in "abc"]


def test_an_expression_too_deep_for_a_version_is_a_file_of_its_own() -> None:
    deep = parse(b"x = " + b" + ".join([b"1"] * 5000))
    assert deep.broken
    assert deep.skeleton != parse(b"x = " + b" + ".join([b"2"] * 5000)).skeleton


def test_a_file_that_may_not_be_read_differs_from_one_that_is_absent(tmp_path: Path) -> None:
    from bench_code.present import file_value  # noqa: PLC0415

    (tmp_path / "link").symlink_to("link")
    assert {file_value(tmp_path / "link"), file_value(tmp_path / "none"), file_value(os.curdir)} == {
        "unreadable",
        "absent",
        "folder",
    }
