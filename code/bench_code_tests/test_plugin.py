"""`pytest --bench-impact` in real repositories: what runs again after a change, and what is kept."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from repositories import MONEY, impact, repository, write

import bench
from bench_code import ExecutionState

FIXTURES = {
    "lib.py": "def make():\n    return [1]\n\n\ndef size(x):\n    return len(x)\n\n\ndef other():\n    return 2\n",
    "tests/conftest.py": "import lib\nimport pytest\n\n\n@pytest.fixture(scope='session')\ndef made(): return lib.make()\n",
    "tests/test_a.py": "def test_one(made):\n    assert made\n\n\ndef test_two(made):\n    assert len(made) == 1\n",
    "tests/test_b.py": "import lib\n\n\ndef test_other():\n    assert lib.other() == 2\n",
}
ENVIRONMENT = {"PYTHONPATH": "."}


@pytest.fixture
def money(tmp_path: Path) -> Path:
    root = repository(tmp_path / "money")
    impact(root)
    return root


def test_nothing_runs_again_where_nothing_changed(money: Path) -> None:
    assert impact(money)[:2] == ([], 2)


def test_nothing_runs_again_where_bench_is_installed_beside_other_packages(tmp_path: Path) -> None:
    root, base = repository(tmp_path / "money"), tmp_path / "installed"
    packages = Path(sysconfig.get_path("purelib", "posix_user", {"userbase": str(base)}))
    packages.mkdir(parents=True)
    (packages / "bench").symlink_to(Path(bench.__file__).parent, target_is_directory=True)
    variables = {"PYTHONPATH": str(packages), "PYTHONUSERBASE": str(base)}
    impact(root, variables=variables)
    assert impact(root, variables=variables)[:2] == ([], 2)


def test_a_changed_function_runs_the_tests_that_ran_it(money: Path) -> None:
    write(money, {"money.py": (money / "money.py").read_text().replace("sum(amounts)", "1 + sum(amounts)")})
    assert impact(money)[:2] == (["test_money.py::test_total FAILED"], 1)


def test_a_comment_and_a_function_that_no_test_ran_invalidate_nothing(money: Path) -> None:
    text = (money / "money.py").read_text().replace("total([x])", "total([x, x])")
    write(money, {"money.py": f"# more words\n{text}"})
    assert impact(money)[:2] == ([], 2)


def test_a_kept_failure_fails_the_session(money: Path) -> None:
    write(money, {"names.py": "def greet(name):\n    return name\n"})
    impact(money)
    ran, kept, printed = impact(money)
    assert (ran, kept) == ([], 2)
    assert "FAILED test_names.py::test_greet (kept from step 2)" in printed


@pytest.mark.parametrize("words", [("-k", "total"), ("--deselect", "test_names.py::test_greet"), ("--ignore", "test_names.py")])
def test_a_kept_failure_of_a_test_that_was_not_chosen_is_left_out(money: Path, words: tuple[str, ...]) -> None:
    write(money, {"names.py": "def greet(name):\n    return name\n"})
    impact(money)
    ran, kept, printed = impact(money, *words)
    assert (ran, kept) == ([], 1) and "FAILED" not in printed and "failures" not in printed, printed
    assert ExecutionState.open(money).run(words) == 0


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
    root = repository(tmp_path, FIXTURES)
    environment = {"PYTHONPATH": f"{root}:{Path(__file__).parents[2]}"}
    impact(root, variables=environment)
    write(root, {"lib.py": FIXTURES["lib.py"].replace("[1]", "[1, 2]")})
    ran, kept, _ = impact(root, variables=environment)
    assert (ran, kept) == (["tests/test_a.py::test_one PASSED", "tests/test_a.py::test_two FAILED"], 1)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import time; assert time.time() > 0", "reads the clock"),
        ("import datetime; assert datetime.datetime.now()", "reads the clock"),
        ("import random; assert random.random() < 2", "draws unseeded chance"),
        ("import os; assert os.urandom(2)", "draws unseeded chance"),
        ("import subprocess; subprocess.run(['true'], check=True)", "starts a process (subprocess.Popen)"),
        ("open('left.txt', 'w').close()", "writes into the tree (left.txt)"),
    ],
)
def test_a_volatile_test_always_runs(tmp_path: Path, body: str, why: str) -> None:
    calm = "def test_calm():\n    import random\n    random.seed(1)\n    assert random.random()\n"
    root = repository(
        tmp_path,
        {"test_v.py": f"def test_v():\n    {body}\n\n\n{calm}"},
    )
    impact(root)
    assert impact(root)[:2] == (["test_v.py::test_v PASSED"], 1)
    assert ExecutionState.open(root).executions("test_v.py::test_v")[-1].volatile == f"{why} at test_v.py:2"


def test_tests_that_read_a_clock_or_draw_chance_are_kept_where_the_user_says_that_it_does_not_matter(tmp_path: Path) -> None:
    bodies = ("import time; time.time()", "import random; random.random()", "import subprocess; subprocess.run(['true'])")
    tests = "\n\n".join(f"def test_{number}():\n    {body}\n" for number, body in enumerate(bodies))
    root = repository(
        tmp_path, {"test_v.py": tests, "pyproject.toml": "[tool.pytest.ini_options]\nbench_impact_ignores = ['clock']\n"}
    )
    impact(root)
    assert impact(root)[:2] == (["test_v.py::test_1 PASSED", "test_v.py::test_2 PASSED"], 1)
    write(root, {"pyproject.toml": "[tool.pytest.ini_options]\nbench_impact_ignores = 'clock chance'\n"})
    assert len(impact(root)[0]) == 3  # pytest's configuration has changed
    assert impact(root)[:2] == (["test_v.py::test_2 PASSED"], 2)


def test_an_unknown_thing_to_ignore_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    root = repository(tmp_path, {"test_v.py": "def test_v():\n    pass\n"})
    _, _, printed = impact(root, "-o", "bench_impact_ignores=clocks")
    assert "ERROR: bench_impact_ignores: 'clocks' is none of clock, chance" in printed


def test_files_and_the_environment_and_absent_ones_are_followed(tmp_path: Path) -> None:
    body = "import os\n\n\ndef test_file():\n    assert os.path.exists('wanted.txt') or not os.path.exists('wanted.txt')\n\n\n"
    body += "def test_variable():\n    os.environ.get('SOME_SETTING')\n\n\ndef test_data():\n    open('data.txt').read()\n"
    root = repository(tmp_path, {"test_f.py": body, "data.txt": "1"})
    impact(root)
    write(root, {"wanted.txt": "here"})
    assert impact(root)[0] == ["test_f.py::test_file PASSED"]
    write(root, {"data.txt": "2"})
    assert impact(root)[0] == ["test_f.py::test_data PASSED"]
    assert impact(root, variables={"SOME_SETTING": "1"})[0] == ["test_f.py::test_variable PASSED"]


def test_what_tests_share_in_stealth_is_found_in_the_reverse_order(tmp_path: Path) -> None:
    shared = (
        "import slow\nmemo = []\n\n\ndef value():\n    if not memo:\n        memo.append(slow.computed())\n    return memo[0]\n"
    )
    tests = "import memo\n\n\n" + "\n\n".join(f"def test_{each}():\n    assert memo.value() == 1\n" for each in "abc")
    root = repository(tmp_path, {"memo.py": shared, "slow.py": "def computed():\n    return 1\n", "test_memo.py": tests})
    impact(root)
    impact(root, "--bench-record=reversed")
    write(root, {"slow.py": "def computed():\n    return 2\n"})
    ran, kept, _ = impact(root)
    assert (ran, kept) == ([f"test_memo.py::test_{each} FAILED" for each in "abc"], 0)


def test_a_file_that_was_broken_off_is_not_known(money: Path) -> None:
    write(money, {"test_names.py": "def test_first():\n    assert 0\n\n\ndef test_second():\n    assert 1\n"})
    impact(money, "-x")
    assert impact(money)[0] == ["test_names.py::test_first FAILED", "test_names.py::test_second PASSED"]


def test_outside_of_a_repository_it_says_so_in_one_line(tmp_path: Path) -> None:
    write(tmp_path, {"test_a.py": "def test_a(): pass\n"})
    assert "lies in no git repository; begin one with `git init`" in impact(tmp_path)[2]


@pytest.mark.parametrize("words", [("-q", "-x"), ("--tb", "short"), ("-k", "total"), ("--durations", "3"), ("-rA", "-s")])
def test_options_that_show_results_otherwise_run_no_test_again(money: Path, words: tuple[str, ...]) -> None:
    assert impact(money, *words)[0] == []


def test_a_program_reads_what_ran_what_was_kept_and_why_it_failed(money: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    write(money, {"money.py": MONEY["money.py"].replace("sum(", "max(")})
    for ran, kept_from in ((["test_money.py::test_total"], None), ([], 2)):
        impact(money, f"--bench-json={file}")
        report = json.loads(file.read_text())
        (failure,) = report["failures"]
        assert (report["exit"], list(report["ran"]), failure["kept_from"]) == (1, ran, kept_from)
        assert failure["name"] == "test_money.py::test_total" and "assert 4 == 6" in failure["message"]
        assert report["kept"]["test_names.py::test_greet"] == "passed"


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
