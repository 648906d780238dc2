"""State that collection makes, code that is loaded or named by other ways, and tests that could tell that they are recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import impact, repository, write

PKG = {"pkg/__init__.py": "", "pkg/part.py": "VALUE = 1\n\n\nclass Thing:\n    size = 1\n"}
CHANGED = {"pkg/part.py": PKG["pkg/part.py"].replace("1", "2")}

BY_OTHER_WAYS = {
    "spec": "import importlib.util as u, pkg.part\nFILE = pkg.part.__file__\nWORD = 'value'\ndef test_it():\n"
    "    spec = u.spec_from_file_location('other', FILE)\n    module = u.module_from_spec(spec)\n"
    "    spec.loader.exec_module(module)\n    assert getattr(module, WORD.upper()) == 1\n",
    "alias": "import importlib\nload = importlib.import_module\ndef test_it():\n"
    "    assert getattr(load('.'.join(['pkg', 'part'])), 'valu'.upper() + 'E') == 1\n",
    "map": "import importlib\ndef test_it():\n    [part] = map(importlib.import_module, ['pkg.' + 'part'])\n"
    "    assert [v for k, v in sorted(vars(part).items()) if k.isupper()] == [1]\n",
    "plugins": "import pkgutil, pkg\ndef test_it():\n    for info in pkgutil.iter_modules(pkg.__path__, 'pkg.'):\n"
    "        spec = info.module_finder.find_spec(info.name)\n        import importlib.util\n"
    "        made = importlib.util.module_from_spec(spec)\n        spec.loader.exec_module(made)\n"
    "        assert getattr(made, 'Th' + 'ing').size == 1\n",
    "members": "import inspect, pkg.part\ndef test_it():\n"
    "    assert [v.size for k, v in inspect.getmembers(pkg.part, inspect.isclass)] == [1]\n",
    "vars": "import pkg.part\ndef test_it():\n    assert vars(getattr(pkg, 'PART'.lower()))['VALUE'.title().upper()] == 1\n",
}


def test_code_that_is_loaded_or_named_by_other_ways_makes_its_reader_run_again(tmp_path: Path) -> None:
    tests = {f"test_{name}.py": text for name, text in BY_OTHER_WAYS.items()}
    root = repository(tmp_path / "r", PKG | tests)
    ran, _, text = impact(root)
    assert len(ran) == len(tests) and all("PASSED" in each for each in ran), text
    write(root, CHANGED)
    ran, kept, text = impact(root)
    assert (sorted(each.partition("::")[0] for each in ran), kept) == (sorted(tests), 0), text


def test_code_that_looks_at_code_relies_on_bodies_that_it_does_not_run(tmp_path: Path) -> None:
    test = "import dis, lib\ndef test_it():\n    assert 7 in lib.never.__code__.co_consts\n"
    root = repository(tmp_path / "r", {"lib.py": "def never():\n    return 7\n", "test_it.py": test})
    assert impact(root)[0] == ["test_it.py::test_it PASSED"]
    write(root, {"lib.py": "def never():\n    return 8\n"})
    assert impact(root)[0] == ["test_it.py::test_it FAILED"]


TABLE = "TABLE = {}\n\n\ndef size():\n    return len(TABLE)\n\n\ndef load(path):\n    TABLE[path] = open(path).read()\n"
SEES = "import table\ndef test_sees():\n    assert list(table.TABLE.values()) == ['abc']\n"
FILLS = "import table\ntable.load('words.txt')\ndef test_own():\n    assert table.size() == 1\n"


@pytest.mark.parametrize(
    "change",
    [
        {"words.txt": "xyz"},
        {"table.py": TABLE.replace(".read()", ".read() * 2")},
        {"test_a.py": FILLS.replace("table.load('words.txt')\n", "")},
        {"test_a.py": FILLS.replace("table.load", "table.TABLE['other'] = 1\ntable.load")},
        {"test_aa.py": "import table\ntable.TABLE[0] = 1\ndef test_new():\n    pass\n"},
    ],
    ids=["data", "body", "gone", "more", "new"],
)
def test_what_the_collection_of_a_file_does_counts_for_the_tests_of_other_files(tmp_path: Path, change: dict[str, str]) -> None:
    files = {"table.py": TABLE, "words.txt": "abc", "test_a.py": FILLS, "test_b.py": SEES}
    root = repository(tmp_path / "r", files)
    assert impact(root)[0] == ["test_a.py::test_own PASSED", "test_b.py::test_sees PASSED"]
    write(root, change)
    assert "test_b.py::test_sees FAILED" in impact(root)[0]


def test_an_import_that_another_file_made_counts(tmp_path: Path) -> None:
    tests = {
        "test_a.py": "import pkg.part\ndef test_a():\n    pass\n",
        "test_b.py": "import pkg\ndef test_b():\n    assert pkg.part\n",
    }
    root = repository(tmp_path / "r", PKG | tests)
    assert len(impact(root)[0]) == 2
    write(root, {"test_a.py": "def test_a():\n    pass\n"})
    assert "test_b.py::test_b FAILED" in impact(root)[0]


@pytest.mark.parametrize("words", [("tests",), ("tests/test_a.py",), ()], ids=["folder", "file", "testpaths"])
def test_a_file_that_no_session_collects_runs_no_test_again(tmp_path: Path, words: tuple[str, ...]) -> None:
    other = {"others/test_z.py": "import table\ntable.TABLE[0] = 1\ndef test_z(): pass\n"}
    files = {"table.py": "TABLE = {}\n", "tests/test_a.py": "import table\ndef test_sees(): assert not table.TABLE\n"}
    root = repository(tmp_path / "r", files | other | {"pytest.ini": "[pytest]\ntestpaths = tests\npythonpath = .\n"})
    impact(root, *words)
    assert impact(root, *words)[:2] == ([], 1)
    write(root, {"tests/test_0.py": other["others/test_z.py"]})
    ran, kept, _ = impact(root, *words)
    assert (len(ran), kept) == ((0, 1) if words == ("tests/test_a.py",) else (2, 0))


def test_a_new_test_and_a_new_body_run_no_test_of_another_file(tmp_path: Path) -> None:
    tests = {
        "test_a.py": "import pytest as t, pkg.part\n@t.mark.parametrize('n', [1])\ndef test_a(n):\n    assert pkg.part.VALUE\n",
        "test_b.py": "import pkg\ndef test_b():\n    assert pkg\n",
    }
    root = repository(tmp_path / "r", PKG | tests)
    assert len(impact(root)[0]) == 2
    write(
        root, {"test_a.py": tests["test_a.py"] + "def test_more():\n    assert pkg\n", "test_c.py": "def test_c():\n    pass\n"}
    )
    ran, kept, text = impact(root)
    assert kept == 1 and "test_b.py" not in " ".join(ran), text


@pytest.mark.parametrize("package", [{"pkg/__init__.py": ""}, {"pkg/data.txt": ""}], ids=["package", "namespace"])
def test_a_new_module_for_which_an_import_looked_in_a_package_counts(tmp_path: Path, package: dict[str, str]) -> None:
    test = "import pkg\ndef test_it():\n    try:\n        from pkg import fast\n    except ImportError:\n        fast = None\n"
    root = repository(tmp_path / "r", {"test_it.py": f"{test}    assert fast is None\n", **package})
    assert impact(root)[0] == ["test_it.py::test_it PASSED"]
    write(root, {"pkg/fast.py": ""})
    assert impact(root)[0] == ["test_it.py::test_it FAILED"]


UNCHANGED = """
import functools, importlib, inspect, linecache, os, pickle, shutil, time, warnings
import pytest

@functools.lru_cache
def get():
    return object()

@pytest.fixture(scope="session")
def held():
    return get()

def test_first(held):
    assert get() is held

def test_second(held):
    assert get() is held

def test_links_can_be_left_as_they_are(tmp_path):
    (tmp_path / "a").write_text("")
    shutil.copy2(tmp_path / "a", tmp_path / "b", follow_symlinks=False)
    assert os.stat in os.supports_follow_symlinks and os.stat in os.supports_dir_fd

def test_a_function_of_os_can_be_pickled_and_has_its_signature():
    assert pickle.loads(pickle.dumps(os.stat)) is os.stat
    assert "follow_symlinks" in inspect.signature(os.stat).parameters

def test_a_warning_of_an_import_names_its_line():
    with pytest.warns(UserWarning) as seen:
        import warns
    assert seen[0].filename == __file__

LINES = "def made():\\n    return 1\\n"
linecache.cache["<made>"] = (len(LINES), None, LINES.splitlines(True), "<made>")
exec(compile(LINES, "<made>", "exec"))

def test_generated_code_has_its_source():
    assert "return 1" in inspect.getsource(made)
"""


def test_nothing_changes_because_it_is_recorded(tmp_path: Path) -> None:
    warns = "import warnings\nwarnings.warn('old', stacklevel=2)\n"
    root = repository(tmp_path / "r", {"test_it.py": UNCHANGED, "warns.py": warns})
    ran, _, text = impact(root)
    assert len(ran) == 6 and all("PASSED" in each for each in ran), text


def test_a_folder_of_the_tree_is_not_installed_because_of_its_name(tmp_path: Path) -> None:
    files = {"site-packages/plug.py": "def f():\n    return 1\n", "node_modules/data.txt": "abc"}
    test = (
        "import sys; sys.path.insert(0, 'site-packages')\nimport plug\ndef test_it():\n    assert plug.f() == 1\n"
        "def test_data():\n    assert open('node_modules/data.txt').read() == 'abc'\n"
    )
    root = repository(tmp_path / "r", {"test_it.py": test, **files})
    assert len(impact(root)[0]) == 2
    write(root, {"site-packages/plug.py": "def f():\n    return 2\n", "node_modules/data.txt": "abd"})
    assert impact(root)[0] == ["test_it.py::test_data FAILED", "test_it.py::test_it FAILED"]


def test_a_raw_thread_makes_its_starter_run_always(tmp_path: Path) -> None:
    test = "import _thread\ndef test_it():\n    _thread.start_new_thread(len, ('',))\n"
    root = repository(tmp_path / "r", {"test_it.py": test})
    assert len(impact(root)[0]) == len(impact(root)[0]) == 1
