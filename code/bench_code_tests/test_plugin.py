"""`pytest --bench-impact` in real repositories: what runs again after a change, and what is kept."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repositories import MONEY, impact, repository, write
from sessions import session

from bench_code import ExecutionState

FIXTURES = {
    "lib.py": "def make():\n    return [1]\n\n\ndef size(x):\n    return len(x)\n\n\ndef other():\n    return 2\n",
    "tests/conftest.py": "import lib\nimport pytest\n\n\n@pytest.fixture(scope='session')\ndef made(): return lib.make()\n",
    "tests/test_a.py": "def test_one(made):\n    assert made\n\n\ndef test_two(made):\n    assert len(made) == 1\n",
    "test_b.py": "import lib\n\n\ndef test_other():\n    assert lib.other() == 2\n",
}


@pytest.fixture
def money(tmp_path: Path) -> Path:
    root = repository(tmp_path / "money")
    impact(root)
    return root


def test_nothing_runs_again_where_nothing_changed(money: Path) -> None:
    assert impact(money)[:2] == ([], 2)


def test_a_changed_function_runs_the_tests_that_ran_it(money: Path) -> None:
    write(money, {"money.py": (money / "money.py").read_text().replace("sum(amounts)", "1 + sum(amounts)")})
    assert impact(money)[:2] == (["test_money.py::test_total FAILED"], 1)


def test_a_comment_and_a_function_that_no_test_ran_invalidate_nothing(money: Path) -> None:
    text = (money / "money.py").read_text().replace("total([x])", "total([x, x])")
    write(money, {"money.py": f"# more words\n{text}"})
    assert impact(money)[:2] == ([], 2)


@pytest.mark.parametrize("words", [("-k", "total"), ("--deselect", "test_names.py::test_greet"), ("--ignore", "test_names.py")])
def test_only_chosen_tests_are_counted_as_kept(money: Path, words: tuple[str, ...]) -> None:
    assert impact(money, *words)[:2] == ([], 1)


def test_what_a_revert_brings_back_need_not_run_again(money: Path) -> None:
    before = (money / "names.py").read_text()
    write(money, {"names.py": before.replace("hello", "bye")})
    impact(money)
    write(money, {"names.py": before})
    assert impact(money)[:2] == ([], 2)


def test_a_new_test_runs_where_the_others_of_its_file_are_kept(money: Path) -> None:
    text = (money / "test_names.py").read_text()
    write(money, {"test_names.py": f"{text}\n\ndef test_more():\n    assert names.greet('b')\n"})
    ran, _, _ = impact(money)
    assert "test_names.py::test_more PASSED" in ran


def test_a_session_fixture_invalidates_each_test_that_uses_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", FIXTURES)
    impact(root)
    write(root, {"lib.py": FIXTURES["lib.py"].replace("[1]", "[1, 2]")})
    ran, kept, _ = impact(root)
    assert (ran, kept) == (["tests/test_a.py::test_one PASSED", "tests/test_a.py::test_two FAILED"], 1)


def test_a_test_that_starts_a_process_runs_on_every_change_and_is_kept_without_one(tmp_path: Path) -> None:
    tests = "import subprocess, money\ndef test_it(): subprocess.run(['true'])\ndef test_calm(): money.total([])\n"
    root = repository(tmp_path / "r", MONEY | {"test_it.py": tests})
    impact(root)
    assert impact(root)[:2] == ([], 4)
    write(root, {"names.py": MONEY["names.py"].replace("hello {", "bye {")})
    assert impact(root)[0] == ["test_it.py::test_it PASSED", "test_names.py::test_greet FAILED"]
    last = ExecutionState.open(root).last("test_it.py::test_it")
    assert last.volatile == "runs on every change: it starts a process (subprocess.Popen)"


def test_no_test_depends_on_the_files_and_folders_that_it_makes(tmp_path: Path) -> None:
    makes = (
        "import os\ndef test_it(tmp_path, tmpdir):\n    (tmp_path / 'a').write_text('x')\n"
        "    os.replace(tmp_path / 'a', tmp_path / 'b')\n    os.mkdir(tmp_path / 'c')\n"
        "    tmpdir.join('d').write('x')\n    assert open(tmpdir.join('d')).read() == 'x'\n"
    )
    odd = (
        "import os, tempfile\nwith tempfile.TemporaryDirectory() as folder:\n"
        "    open(os.fsencode(folder) + b'/caf\\xe9', 'w').close()\n"
    )
    root = repository(tmp_path / "r", MONEY | {"test_it.py": odd + makes})
    assert impact(root, f"--basetemp={tmp_path / 'base'}")[1] == 0
    shutil.rmtree(tmp_path / "base")
    assert impact(root, f"--basetemp={tmp_path / 'base'}")[:2] == ([], 3)
    write(root, {"names.py": MONEY["names.py"].replace("hello {", "bye {")})
    assert impact(root, f"--basetemp={tmp_path / 'base'}")[:2] == (["test_names.py::test_greet FAILED"], 2)


def test_a_failure_is_never_kept(tmp_path: Path) -> None:
    flaky = (
        "import os\ndef test_it():\n    if not os.path.exists('../seen'):\n"
        "        open('../seen', 'w').close()\n        assert 0\n"
    )
    root = repository(tmp_path / "r", MONEY | {"test_it.py": flaky})
    assert "test_it.py::test_it FAILED" in impact(root)[0]
    assert impact(root)[:2] == (["test_it.py::test_it PASSED"], 2)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"money.py": MONEY["money.py"].replace("RATE = 2", "RATE = 1 + 1")}, "the outside of functions in money.py"),
        ({"data.txt": "2"}, "the file data.txt"),
        ({"new.txt": ""}, "which files there are"),
        ({"conftest.py": "A = 2\n"}, "the code of conftest.py"),
        ({"setup.cfg": "[tool:pytest]\nfilterwarnings = error\n"}, "the file setup.cfg"),
    ],
)
def test_anything_but_a_body_runs_all_tests_and_is_named(tmp_path: Path, change: dict[str, str], named: str) -> None:
    root = repository(tmp_path / "r", MONEY | {"data.txt": "1", "conftest.py": "A = 1\n", "setup.cfg": ""})
    impact(root)
    write(root, change)
    ran, kept, printed = impact(root)
    assert (len(ran), kept) == (2, 0) and f"all run, since {named} changed" in printed, printed


def test_the_reason_is_of_the_last_results_and_not_of_what_an_older_one_relied_on(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", MONEY | {"data.txt": "1"})
    impact(root)
    write(root, {"data.txt": "2"})
    assert "all run, since the file data.txt changed" in impact(root)[2]
    write(root, {name: MONEY[name].replace("return", "return 0 or") for name in ("money.py", "names.py")})
    ran, kept, printed = impact(root)
    assert (len(ran), kept) == (2, 0) and "2 tests run, 0 results kept\n" in printed, "each test ran one of the two bodies"
    write(root, {"test_money.py": MONEY["test_money.py"], "conftest.py": "import money\n\nTOTAL = money.total([1])\n"})
    impact(root)
    write(root, {"money.py": MONEY["money.py"].replace("sum(", "max(")})
    assert "all run, since the function money.py::total changed, which is not of one test" in impact(root)[2]
    assert "all run, since none has run so before" in impact(root, "-o", "addopts=--strict-markers")[2]


def test_a_variable_of_the_environment_and_another_package_run_all_tests(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    assert impact(root)[1] == 0
    assert impact(root, variables={"SOME_SETTING": "1"})[1] == 0
    (tmp_path / "site" / "shelf-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "site" / "shelf-1.1.dist-info").mkdir()
    for kept in (0, 2):
        assert impact(root, "-o", f"pythonpath={tmp_path / 'site'}")[1] == kept
    (tmp_path / "site" / "shelf-1.0.dist-info").rmdir()
    assert impact(root, "-o", f"pythonpath={tmp_path / 'site'}")[1] == 0


def test_a_suite_under_a_second_runs_all_at_once_and_says_so(money: Path) -> None:
    seen = session(money, from_=1.0)
    assert (len(seen.ran), seen.kept) == (2, {})
    assert "2 tests run, 0 results kept; all tests run at once, as they take 0." in seen.printed


def test_a_test_function_that_nobody_mentions_runs_its_file_alone(money: Path) -> None:
    write(money, {"test_names.py": MONEY["test_names.py"].replace("hello", "bye")})
    assert impact(money)[:2] == (["test_names.py::test_greet FAILED"], 1)


def test_what_was_not_chosen_or_not_reached_stays_due(money: Path) -> None:
    write(money, {"names.py": MONEY["names.py"].replace("hello", "bye"), "money.py": MONEY["money.py"].replace("sum(", "max(")})
    assert impact(money, "-k", "greet")[:2] == (["test_names.py::test_greet FAILED"], 0)
    assert impact(money, "-x")[0] == ["test_money.py::test_total FAILED"]
    assert len(impact(money)[0]) == 2


LEAVES = {
    "test_a.py": "import money, store\ndef test_a(): store.ITEMS.append(money.total([1]))\n",
    "test_b.py": "import names, store\ndef test_b(): assert store.ITEMS == [2] and names.greet('x')\n",
    "store.py": "ITEMS = []\n",
}


def test_a_test_that_leaves_something_runs_with_those_that_may_see_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", MONEY | LEAVES)
    impact(root)
    write(root, {"names.py": MONEY["names.py"].replace("return", "name = str(name)\n    return")})
    ran, kept, _ = impact(root)
    assert (ran, kept) == (
        [f"{each} PASSED" for each in ("test_a.py::test_a", "test_b.py::test_b", "test_names.py::test_greet")],
        1,
    )


def test_a_result_of_a_session_without_what_leaves_something_counts_in_no_other(tmp_path: Path) -> None:
    sees = "import names, store\ndef test_b(): assert (store.ITEMS == [2]) == (names.greet('x') == 'hello x')\n"
    root = repository(tmp_path / "r", MONEY | LEAVES | {"test_b.py": sees})
    impact(root)
    write(root, {"names.py": MONEY["names.py"].replace("hello", "bye")})
    assert impact(root, "test_b.py")[0] == ["test_b.py::test_b PASSED"], "nothing was left, and the word differs"
    assert "test_b.py::test_b FAILED" in impact(root)[0]


def test_what_a_test_leaves_again_runs_no_other(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", MONEY | LEAVES)
    impact(root)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", "sum([*amounts])")})
    assert impact(root)[:2] == (["test_a.py::test_a PASSED", "test_money.py::test_total PASSED"], 2)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", "3 + sum(amounts)")})
    assert "test_b.py::test_b FAILED" in impact(root)[0]


def test_what_python_keeps_of_its_answers_to_isinstance_runs_no_other(tmp_path: Path) -> None:
    shape = "import abc\n\nclass Shape(abc.ABC):\n    pass\n\nclass Round(Shape):\n    pass\n"
    asks = "import money, shape\ndef test_a(): assert not isinstance(money.total([1]), shape.Shape)\n"
    root = repository(tmp_path / "r", MONEY | {"shape.py": shape, "test_a.py": asks})
    impact(root)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts) * RATE", "float(sum(amounts) * RATE)")})
    assert impact(root)[:2] == (["test_a.py::test_a PASSED", "test_money.py::test_total PASSED"], 1)


LOCKED = {
    "test_a.py": "import locks, money\ndef test_a(): locks.LOCKS.append((money.total([1]), locks.Lock()))\n",
    "test_b.py": "import locks\ndef test_b(): locks.LOCKS.append(locks.Lock())\n",
    "test_c.py": "import locks\ndef test_c(): locks.LOCKS.append((locks.LOCKS[0][0], locks.Lock()))\n",
    "locks.py": "from threading import Lock\n\nLOCKS = []\n",
}


def test_where_most_tests_leave_what_nobody_can_tell_all_run_after_an_edit_that_reaches_one(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", MONEY | LOCKED)
    impact(root)
    for total in ("sum((*amounts,))", "sum([*amounts])"):
        write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", total)})
        ran, kept, printed = impact(root)
        assert (len(ran), kept) == (5, 0) and "since most tests leave what nobody can tell" in printed
        write(root, {"money.py": (root / "money.py").read_text().replace("total([x])", "total([x, x])")})
        assert impact(root)[:2] == ([], 5), "no test ran what changed"
    assert "not looked at" not in impact(root, "--bench-all")[2]


def test_after_many_tests_that_leave_what_nobody_can_tell_all_others_count_as_if_they_did(tmp_path: Path) -> None:
    locks = "import pytest, locks\n@pytest.mark.parametrize('n', range(100))\ndef test_a(n): locks.LOCKS.append(locks.Lock())\n"
    root = repository(tmp_path / "r", MONEY | LOCKED | {"test_a.py": locks, "test_b.py": "", "test_c.py": ""})
    impact(root)
    left = ExecutionState.open(root).store.leftovers()
    assert len(left) == 102 and all(each.is_untold for each in left.values())
    write(root, {"names.py": MONEY["names.py"].replace("return", "name = str(name)\n    return")})
    assert len(impact(root)[0]) == 102


def test_what_a_test_left_is_known_after_a_session_that_was_broken_off_and_after_a_revert(tmp_path: Path) -> None:
    calls = "import money\ndef test_aa(): assert money.total([1]) == 2\n"
    root = repository(tmp_path / "r", MONEY | LEAVES | {"test_aa.py": calls})
    impact(root)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", "3 + sum(amounts)")})
    assert impact(root, "-x")[0] == ["test_a.py::test_a PASSED", "test_aa.py::test_aa FAILED"]
    assert "test_b.py::test_b FAILED" in impact(root)[0]
    write(root, {"money.py": MONEY["money.py"]})
    impact(root)
    assert impact(root)[:2] == ([], 5)
    assert session(root).table["test_b.py::test_b"] == "passed"


LAZY = """
import importlib.util, sys

def lazy(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

lazy("within", "within.py")
lazy("outside", "../outside.py")
"""


def test_a_lazy_module_that_cannot_be_loaded_stays_lazy(tmp_path: Path) -> None:
    write(tmp_path, {"outside.py": "raise ImportError('it was loaded')\n"})
    broken = {"within.py": "raise ImportError('it was loaded')\n", "conftest.py": LAZY}
    root = repository(tmp_path / "r", {**MONEY, **broken})
    assert impact(root)[:2] == (["test_money.py::test_total PASSED", "test_names.py::test_greet PASSED"], 0)
    assert impact(root)[:2] == ([], 2)


def test_an_object_of_a_class_without_a_module_breaks_nothing_off(tmp_path: Path) -> None:
    odd = "\n\nclass Odd:\n    pass\n\n\nOdd.__module__ = None\nODD = [Odd()]\n"
    root = repository(tmp_path / "r", {**MONEY, "money.py": MONEY["money.py"] + odd})
    assert impact(root)[:2] == (["test_money.py::test_total PASSED", "test_names.py::test_greet PASSED"], 0)


def test_a_file_that_was_broken_off_is_not_known(money: Path) -> None:
    write(money, {"test_names.py": "def test_first():\n    assert 0\n\n\ndef test_second():\n    assert 1\n"})
    impact(money, "-x")
    assert impact(money)[0] == ["test_names.py::test_first FAILED", "test_names.py::test_second PASSED"]


def test_a_project_that_takes_each_warning_for_an_error_is_run(money: Path) -> None:
    write(money, {"pytest.ini": "[pytest]\nfilterwarnings = error\n"})
    assert ExecutionState.open(money).run(["-q"]) == 0


def test_outside_of_a_repository_it_says_so_in_one_line(tmp_path: Path) -> None:
    write(tmp_path, {"test_a.py": "def test_a(): pass\n"})
    assert "lies in no git repository; begin one with `git init`" in impact(tmp_path)[2]


@pytest.mark.parametrize("words", [("-q", "-x"), ("--tb", "short"), ("-k", "total"), ("--durations", "3"), ("-rA", "-s")])
def test_options_that_show_results_otherwise_run_no_test_again(money: Path, words: tuple[str, ...]) -> None:
    assert impact(money, *words)[0] == []


def test_a_program_reads_what_ran_what_was_kept_and_what_failed(money: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    write(money, {"money.py": MONEY["money.py"].replace("sum(", "max(")})
    impact(money, f"--bench-json={file}")
    report = json.loads(file.read_text())
    (failure,) = report["failures"]
    assert (report["exit"], list(report["ran"])) == (1, ["test_money.py::test_total"])
    assert failure["name"] == "test_money.py::test_total" and "assert 4 == 6" in failure["message"]
    assert report["kept"] == {"test_names.py::test_greet": "passed"}


def test_a_program_reads_why_no_test_ran(money: Path, tmp_path: Path) -> None:
    write(money, {"test_bad.py": "import nonsense\n"})
    file = tmp_path / "report.json"
    for words, code, reason in (
        (("test_bad.py",), 2, "1 error during collection"),
        (("-k", "no_such_test", "test_money.py"), 5, "no test was chosen"),
        (("-k", "a and", "test_money.py"), 4, "Wrong expression passed to '-k'"),
        (("test_none.py",), 4, "file or directory not found: test_none.py"),
    ):  # fmt: skip
        impact(money, f"--bench-json={file}", *words)
        report = json.loads(file.read_text())
        assert (report["exit"], report["kept"]) == (code, {}) and reason in report["reason"], report
        assert [each["name"] for each in report["failures"]] == (["test_bad.py"] if code == 2 else [])
        assert code != 2 or "No module named 'nonsense'" in report["failures"][0]["message"]


ALONE = """
import sys
from importlib.metadata import requires
from packaging.requirements import Requirement
waiting, needed = ["typer", "pytest"], {"bench", "bench_code"}
while waiting:
    name = waiting.pop()
    if name in needed:
        continue
    needed.add(name)
    for needs in map(Requirement, requires(name) or ()):
        waiting += [needs.name] if not needs.marker or needs.marker.evaluate({"extra": ""}) else []
allowed = {name.replace("-", "_").lower() for name in needed} | {"_pytest", "py", "markdown_it", "yaml"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in allowed and not top.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, Refuse())
from bench.__main__ import main
sys.argv = ["bench", "code", *sys.argv[1:]]
main()
"""


def test_the_wing_needs_nothing_but_typer_and_pytest(money: Path) -> None:
    for words, line in (
        (("log",), "2 passed"),
        (("needs", "test_names.py::test_greet"), "body  names.py::greet"),
        (("rum",), "no such command"),
    ):
        done = subprocess.run((sys.executable, "-c", ALONE, *words), cwd=money, capture_output=True, text=True, check=False)
        assert line in done.stdout + done.stderr, done.stderr


def test_the_plug_in_and_the_state_load_nothing_heavy() -> None:
    asked = "import sys; from bench_code import ExecutionState; import bench_code.{}; print(*sys.modules)"
    for module, heavy in (
        ("state", {"pandas", "pydantic", "numpy", "pytest", "typer"}),
        ("cli", {"pandas", "pydantic", "numpy"}),
    ):
        done = subprocess.run((sys.executable, "-c", asked.format(module)), capture_output=True, text=True, check=True)
        assert not heavy & set(done.stdout.split())


def test_the_plug_in_loads_nothing_of_the_wing_unless_it_is_asked_for(tmp_path: Path) -> None:
    asked = "import sys, pytest; pytest.main(['-q', '-p', 'bench_code.plugin', '--co', sys.argv[1]]); print(*sys.modules)"
    done = subprocess.run((sys.executable, "-c", asked, str(tmp_path)), capture_output=True, text=True, check=True)
    by_itself = {"bench.probe", "bench.probe.pytest_plugin"}  # the probe's plug-in, which pytest finds where bench is installed
    assert {name for name in done.stdout.split() if name.startswith("bench")} - by_itself == {
        "bench",
        "bench_code",
        "bench.common",
        "bench.common.former_paths",
        "bench_code.plugin",
    }
