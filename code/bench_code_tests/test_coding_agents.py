"""What is counted of a coding agent and its tests, and what is said of that."""

from __future__ import annotations

import subprocess
from pathlib import Path

from coding_agents.report import FOLDER, KINDS, difference, of_kind, report, results
from coding_agents.scripted import count_tests, scripted
from coding_agents.tasks import Task, digest, stamp, write
from impact.rows import read

ROOT = Path(__file__).parents[2]
ROWS = read(ROOT / FOLDER / "retesting.csv")


def _row(task: str, arm: str, **values: str) -> dict[str, str]:
    row = dict.fromkeys(("slips", "calls", "read", "written", "tests", "processor", "seconds", "wrong", "recording"), "0")
    return row | {"task": task, "arm": arm, "model": "scripted", "believed": "1", "right": "1", "checks": "1"} | values


def test_the_difference_is_that_of_the_same_task_and_an_unpaired_task_does_not_count() -> None:
    rows = [_row("a/1", "all", tests="10"), _row("a/1", "selection", tests="4")]
    rows += [_row("a/2", "selection", tests="16"), _row("a/2", "all", tests="20"), _row("a/3", "all", tests="900")]
    mean = difference(rows, "tests", "selection")
    assert (mean.n, mean.mean) == (2, -5.0)
    assert mean.low is not None
    assert mean.low < -6


def test_a_difference_is_better_or_worse_only_where_its_interval_leaves_out_zero() -> None:
    rows = [_row(f"a/{at}", arm) for at in range(4) for arm in ("all", "selection", "failing")]
    for at, row in enumerate(rows):
        if row["arm"] == "selection":
            row |= {"tests": f"-{5 + at % 2}", "processor": f"{5 + at % 2}", "seconds": f"{(-1) ** at * 5}"}
    verdicts = {line.partition(":")[2].partition(" a task")[0].strip(): line.partition(":")[0] for line in results(rows)[2:]}
    assert verdicts == {
        "runs of tests": "Better",
        "processor seconds of its tests": "Worse",
        "seconds of its tests": "Not told apart",
        "tokens read": "Not told apart",
    }


def test_only_a_wrong_tree_that_was_believed_is_a_wrong_belief() -> None:
    rows = [_row("repairs/1", "all"), _row("repairs/1", "selection", believed="0", right="0")]
    line = " ".join(results([*rows, _row("repairs/1", "failing", wrong="1", right="0")]))
    assert "0 of 1 with all tests, 0 of 0 with the selection, 1 of 1 with the failing test" in line
    assert "repaired 1 with all tests, 0 with the selection, 0 with the failing test" in line
    assert "never ran" not in line


def test_a_run_without_its_tests_is_told() -> None:
    rows = [_row("repairs/1", "all", calls="4"), _row("repairs/1", "selection", calls="6", checks="0")]
    assert "In 1 of 2 runs, of 10 calls in all, it never ran its command." in results(rows)


def test_the_tests_that_ran_are_those_of_pytests_last_line() -> None:
    assert count_tests("a test printed: 9 passed in a row\n..F\n1 failed, 2 passed, 3 deselected in 0.10s\n") == 3
    assert count_tests("1 passed in 0.10s\n= 1 failed, 7 passed, 90 subtests passed in 70.00s (0:01:10) =\n") == 9
    assert count_tests("FAILED a.py::b (kept from step 2)\nno tests ran in 0.02s\n") == 0


def test_the_scripted_models_patches_bring_the_tree_from_the_bug_over_the_slip_to_what_is_right(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    states = tuple({"a.py": text} for text in ("x = 1\ny = 2", "x = 2\ny = 3\n", "x = 2\ny = 2"))
    task = Task("a/1", tmp_path, "tests", "tests/a.py::b", states, slips=True)
    write(tmp_path, states[0])
    reply, messages = scripted(task, "test"), [{"role": "user", "content": "repair it"}]
    seen = []
    while "COMPLETE" not in messages[-1]["content"]:
        text = reply(messages)
        command = text.partition("```mswea_bash_command\n")[2].removesuffix("\n```")
        if command != "test":
            subprocess.run(command, shell=True, check=True, cwd=tmp_path, capture_output=True)
        seen.append((tmp_path / "a.py").read_text())
        code = int(seen[-1] != states[2]["a.py"])
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"<returncode>{code}</returncode>"}]
        messages = messages[:-1] if "COMPLETE" in text else messages
    assert list(dict.fromkeys(seen)) == [state["a.py"] for state in states]


def test_an_arm_runs_what_its_name_says() -> None:
    task = Task("a/1", Path(), "tests", "tests/a.py::b[x y]", ({},))
    assert task.command("all").endswith(" tests")
    assert task.command("selection").startswith("bench code run ")
    assert task.command("failing").endswith(" 'tests/a.py::b[x y]'")
    assert task.command("both") == f"{task.command('failing')} && {task.command('all')}"


def test_a_file_has_the_time_of_its_content_so_that_no_bytecode_of_another_is_taken(tmp_path: Path) -> None:
    file, times, trees = tmp_path / "a.py", [], []
    for text in ("x = 1\n", "x = 2\n", "x = 1\n"):
        file.write_text(text)
        stamp(tmp_path)
        times.append(int(file.stat().st_mtime))
        trees.append(digest(tmp_path))
    assert times[0] == times[2] != times[1]
    assert trees[0] == trees[2] != trees[1]


def test_the_report_is_made_of_the_rows() -> None:
    assert (ROOT / FOLDER / "retesting.md").read_text(encoding="utf-8") == report(ROWS)


def test_the_page_says_what_the_rows_say() -> None:
    page = " ".join((ROOT / "docs" / "retesting.md").read_text(encoding="utf-8").split())
    for kind, right in zip(KINDS, ("20 11", "12 12"), strict=True):
        part = of_kind(ROWS, "scripted", kind)
        solved = {
            arm: sum(row["arm"] == arm and row["right"] == "1" for row in part)
            for arm in ("all", "selection", "failing", "both")
        }
        alls, failing = map(int, right.split())
        assert solved == {"all": alls, "selection": alls, "failing": failing, "both": alls}
        assert f"**{alls} tasks of the scripted model in {kind}.** The agent repaired {alls} with" in page
        differences = [line for line in results(part) if " minus " in line and "processor" not in line]
        assert len(differences) == 5
        assert [line for line in differences if line.rpartition(": ")[2].removesuffix(".") not in page] == []
    assert "the agent repaired 11 of 20 and submitted 9 of 10 patches with a slip" in page
    model = of_kind(ROWS, "qwen2.5-coder-1.5b-instruct", KINDS[-1])
    assert f"repaired nothing in {len(model)} runs, and never ran its command" in page
    assert {(row["right"], row["checks"]) for row in model} == {("0", "0")}


def test_the_later_arm_is_not_compared_by_seconds() -> None:
    rows = [_row(f"a/{at}", arm, processor=str(at)) for at in (1, 2) for arm in ("all", "selection", "failing", "both")]
    later = [line for line in results(rows) if ", the failing test and then all minus" in line]
    assert [line.partition(": ")[2].partition(" a task")[0] for line in later] == ["runs of tests", "tokens read"]
