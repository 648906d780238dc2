"""What a person edits is noticed on the same results folder, in one line that names it; what changes no trial is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import bench, bench_anew, workplace
from experiment_runs import config, run
from pack_edits import copy_of

from bench.common.errors import ResultsError
from bench.record.reading import read_trials
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix

OWN = """
from {helper} import subtasks_of


async def mine(task, workbench):
    for subtask in subtasks_of(task):
        proposal = await workbench.propose(subtask)
        workbench.verify(proposal)
        workbench.commit_unverified(proposal)
"""
HELPER = "def subtasks_of(task):\n    return task.subtasks\n"
SAFE = {"PYTHONSAFEPATH": "1"}
"""Python does not put the current folder on the path by itself, as where `bench` is a command."""

RUN = ("run", "configs/small.toml")


def with_own(folder: Path, helper: str = "helpers.order") -> Path:
    """A place to work in, with an architecture of one's own and a helper of it in a sub-package."""
    path = workplace(folder, repetitions=1)
    path.write_text(path.read_text().replace('["static", "runtime_structured"]', '["static", "agents:mine"]'))
    (folder / "agents.py").write_text(OWN.format(helper=helper))
    (folder / "helpers").mkdir()
    (folder / "helpers" / "__init__.py").write_text("")
    (folder / "helpers" / "order.py").write_text(HELPER)
    return folder


def edit(path: Path, old: str = "", new: str = "\n# edited\n") -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)


def refusal(folder: Path) -> str:
    """The one line with which going on is refused."""
    code, _, err = bench(folder, *RUN)
    assert code == 2 and err.startswith("bench: ") and err.count("\n") == 1, err
    return err


def test_an_own_architecture_in_the_working_folder_runs_and_is_known_by_its_code(tmp_path: Path) -> None:
    folder = with_own(tmp_path)
    code, out, err = bench_anew(folder, *RUN, **SAFE)
    assert (code, err) == (0, "") and "4 trials, 0 of them recorded already" in out
    for name in ("agents.py", "helpers/order.py", "helpers/__init__.py"):
        whole = (folder / name).read_text()
        edit(folder / name)
        assert "small-simulated: was recorded with another version of the architecture 'agents:mine'; give" in refusal(folder)
        (folder / name).write_text(whole)
    assert "4 trials, 4 of them recorded already" in bench(folder, *RUN)[1]
    edit(folder / "helpers" / "order.py")
    code, out, _ = bench(folder, *RUN, "--set-aside")
    assert code == 0 and "its name is now results/small-simulated.1" in out and "4 trials, 0 of them recorded already" in out


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("agents.py", "async def mine(task, workbench)\n    pass\n", "agents.py:1: SyntaxError: expected ':'"),
        ("helpers/order.py", "def subtasks_of(\n", "helpers/order.py:1: SyntaxError: '(' was never closed"),
        ("helpers/order.py", "import json\n1 / 0\n", "helpers/order.py:2: ZeroDivisionError: division by zero"),
        ("helpers/order.py", "raise SystemExit(0)\n", "helpers/order.py:1: SystemExit: 0"),
        ("helpers/order.py", "import nowhere\n", "No module named 'nowhere'"),
        ("agents.py", "", "module 'agents' has no attribute 'mine'"),
    ],
)
def test_an_own_architecture_that_cannot_be_loaded_is_one_line_that_says_where(
    tmp_path: Path, file: str, content: str, words: str
) -> None:
    folder = with_own(tmp_path)
    (folder / file).write_text(content)
    assert refusal(folder) == f"bench: architecture 'agents:mine' cannot be imported: {words}\n"
    assert not (folder / "results").exists()


PACK = Path("scenarios") / "demo"


@pytest.mark.parametrize(
    ("file", "old", "words"),
    [
        ("prompts/decide.md", "", "was recorded with another version of what is asked by the scenario 'demo'; give --name"),
        ("reference/answer.json", '"days_left": ', "was recorded with another version of the reference of the scenario 'demo'"),
    ],
)
def test_an_edited_pack_is_one_line_that_names_it(tmp_path: Path, file: str, old: str, words: str) -> None:
    workplace(tmp_path, repetitions=1)
    assert bench(tmp_path, *RUN)[0] == 0
    edit(tmp_path / PACK / file, old, f"{old}1" if old else "\nThink twice.\n")
    assert words in refusal(tmp_path)


def test_an_edited_grader_is_one_line_that_says_how_to_grade_anew(tmp_path: Path) -> None:
    workplace(tmp_path, repetitions=1)
    assert bench(tmp_path, *RUN)[0] == 0
    edit(tmp_path / PACK / grader_of(tmp_path / PACK))
    line = refusal(tmp_path)
    assert "small-simulated: was graded by another version of the grader of 'demo'" in line
    assert "`bench more regrade small-simulated`" in line


def grader_of(pack: Path) -> str:
    [name] = [path.name for path in pack.glob("*.py") if "grad" in path.name]
    return name


def test_an_edited_readme_of_a_pack_changes_nothing(tmp_path: Path) -> None:
    workplace(tmp_path, repetitions=1)
    assert bench(tmp_path, *RUN)[0] == 0
    edit(tmp_path / PACK / "README.md")
    assert "4 trials, 4 of them recorded already" in bench(tmp_path, *RUN)[1]


# -- what determines whose trials --------------------------------------------------------------------------------------

LIVE = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1"}
WRONG_VALUE = {"wrong": {"faults": [{"point": "output", "effect": "wrong_value", "attempts": [1], "subtask": "total"}]}}


def ids(settings: Config, roots: list[Path]) -> dict[str, list[str]]:
    """Plan -> the ids of its trials."""
    matrix = build_matrix(settings, roots, "code")
    return {plan: [spec.id for spec in matrix.specs if spec.plan.name == plan] for plan in settings.plans}


def edit_reference(pack: Path) -> None:
    edit(pack / "reference" / "answer.json", '"confidence": 0.9', '"confidence": 0.95')


def edit_wrong_answer(pack: Path) -> None:
    path = sorted((pack / "reference" / "wrong").glob("*.json"))[0]
    wrong = json.loads(path.read_text())
    name, output = next(iter(wrong["outputs"].items()))
    path.write_text(json.dumps({**wrong, "outputs": {name: {**output, "more": 1}}}))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return copy_of("tiny", tmp_path)


@pytest.mark.parametrize("change", [edit_reference, edit_wrong_answer])
def test_the_reference_and_the_wrong_answers_determine_only_what_is_made_of_them(
    tiny: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    simulated = run(config({"kind": "simulated"}, plans=["none"], repetitions=1), tmp_path / "simulated", [tmp_path])
    plans = {"plans": ["none", "wrong"], "plan": WRONG_VALUE, "repetitions": 1}
    settings = {
        "live": config(LIVE, **plans),
        "recorded": config({"kind": "recorded", "run": tmp_path / "simulated"}, **plans),
        "simulated": config({"kind": "simulated"}, **plans),
    }
    before = {name: ids(setting, [tmp_path]) for name, setting in settings.items()}
    change(tiny)
    after = {name: ids(setting, [tmp_path]) for name, setting in settings.items()}
    same = {(name, plan) for name in settings for plan in ("none", "wrong") if before[name][plan] == after[name][plan]}
    assert same == {("live", "none"), ("recorded", "none")} and simulated


@pytest.mark.parametrize("change", [lambda pack: edit(pack / "prompts" / "total.md"), edit_reference])
def test_the_trials_of_two_versions_of_a_pack_never_lie_in_one_folder(
    tiny: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    settings = config({"kind": "simulated"}, plans=["none"], repetitions=1)
    first = run(settings, tmp_path / "run", [tmp_path])
    change(tiny)
    with pytest.raises(ResultsError, match=r"was recorded with another version of .* scenario 'tiny'"):
        run(settings, tmp_path / "run", [tmp_path])
    assert list(read_trials(tmp_path / "run")) == first
